// Replaces what has changed on a live page, and follows the end of a log.
"use strict";
{
  const content = document.getElementById("content");
  const connection = document.getElementById("connection");
  const logs = () => [...content.querySelectorAll("pre[id]")];
  // A log is read from its first error, or else from its end.
  const toPlace = (log) => {
    const error = log.querySelector("mark");
    log.scrollTop = error ? error.offsetTop - log.offsetTop - 40 : log.scrollHeight;
  };

  // Changes what differs only, so that focus, selection and scroll positions stay.
  const update = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
      old.replaceWith(fresh);
      return;
    }
    // Whether details are open is up to the reader.
    const names = new Set([...old.getAttributeNames(), ...fresh.getAttributeNames()]);
    names.delete("open");
    for (const name of names) {
      if (!fresh.hasAttribute(name)) old.removeAttribute(name);
      else if (old.getAttribute(name) !== fresh.getAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
    }
    const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
    before.slice(after.length).forEach((child) => child.remove());
    after.forEach((child, index) => {
      if (index < before.length) update(before[index], child);
      else old.append(child);
    });
  };

  const show = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const fresh = document.importNode(page.getElementById("content"), true);
    // As it has been done to what is shown.
    window.setUpPage(fresh);
    const atEnd = new Set(logs()
      .filter((log) => log.scrollHeight - log.scrollTop - log.clientHeight < 24)
      .map((log) => log.id));
    const places = new Map(logs().map((log) => [log.id, log.scrollTop]));
    update(content, fresh);
    for (const log of logs()) {
      // Another element may stand in its place.
      if (places.has(log.id) && !atEnd.has(log.id)) log.scrollTop = places.get(log.id);
      else toPlace(log);
    }
  };

  const say = (text, isLost = false) => {
    connection.textContent = text;
    connection.classList.toggle("lost", isLost);
  };
  const isLive = () => content.hasAttribute("data-live");
  let shown = null;
  const refresh = async () => {
    const answer = await fetch(location.href);
    const text = await answer.text();
    if (answer.ok && text !== shown) show(text);
    shown = text;
    // Such as that of a run that was deleted meanwhile.
    if (!answer.ok) content.removeAttribute("data-live");
    say(answer.ok ? (isLive() ? "live" : "") : text, !answer.ok);
  };
  const follow = async () => {
    const begun = performance.now();
    if (!document.hidden) await refresh().catch(() => say("connection lost", true));
    // A list of many runs may use a tenth of a core.
    if (isLive()) setTimeout(follow, Math.max(1000, 10 * (performance.now() - begun)));
  };
  logs().forEach(toPlace);
  if (isLive()) follow();
  // A report in a frame names another one, which it has no session to open.
  window.addEventListener("message", ({ source: from, data }) => {
    const { origin, pathname } = new URL(data, location.href);
    const isReport = /^\/pipelines\/[^/]+\/runs\/[^/]+\/report\.html$/.test(pathname);
    const isOurs = from === content.querySelector("iframe")?.contentWindow && origin === location.origin;
    if (isReport && isOurs) location.assign(pathname);
  });
}
