// The page can be read without this: it sorts, filters, shortens and copies tables,
// marks the section in view, and switches the colours.
"use strict";
{
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const root = document.documentElement;

  const stored = (value) => {
    // A page opened from a file may have no storage.
    try {
      if (value !== undefined) localStorage.setItem("sluice-theme", value);
      return localStorage.getItem("sluice-theme");
    } catch {
      return value;
    }
  };
  if (stored()) root.dataset.theme = stored();
  for (const button of all("button.theme")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const prefersDark = matchMedia("(prefers-color-scheme: dark)").matches;
      const isDark = root.dataset.theme ? root.dataset.theme === "dark" : prefersDark;
      root.dataset.theme = isDark ? "light" : "dark";
      stored(root.dataset.theme);
    });
  }

  const copy = async (text, button) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    // Not every browser allows navigator.clipboard on a page opened from a file.
    const done = document.execCommand("copy") ||
      await navigator.clipboard?.writeText(text).then(() => true, () => false);
    area.remove();
    const before = button.textContent;
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  };

  const setUpCommand = (box) => {
    const button = box.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => copy(box.querySelector("pre").textContent, button));
  };

  const setUpTable = (box) => {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const limit = Number(box.dataset.limit);
    const filter = box.querySelector("input");
    const more = box.querySelector("button.more");
    let isShort = rows.length > limit;
    let matching = rows;

    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      matching = [];
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        const matches = words.every((word) => text.includes(word));
        if (matches) matching.push(row);
        row.hidden = !matches || (isShort && matching.length > limit);
      }
      const [found, total] = [matching.length, rows.length].map((n) => n.toLocaleString("en"));
      more.hidden = !(isShort && matching.length > limit);
      more.textContent = `Show all ${found} rows`;
      box.querySelector(".found").textContent = words.length ? `${found} of ${total} rows` : "";
    };
    filter.addEventListener("input", show);
    more.addEventListener("click", () => { isShort = false; show(); });
    box.querySelector("button.copy").addEventListener("click", (event) => {
      const text = (cell) => cell.dataset.value ?? cell.textContent.trim().replace(/\s+/g, " ");
      const lines = [...table.tHead.rows, ...matching].map((row) => [...row.cells].map(text).join("\t"));
      copy(lines.join("\n"), event.target);
    });
    all("thead th", table).forEach((header, index) => {
      if (!header.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        const isNumber = header.classList.contains("number");
        const before = header.getAttribute("aria-sort");
        // Numbers start with the largest.
        const order = before ? (before === "ascending" ? "descending" : "ascending")
          : (isNumber ? "descending" : "ascending");
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const key = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent.trim();
        const compare = (a, b) => {
          const [left, right] = [key(a), key(b)];
          if (!isNumber) return sign * left.localeCompare(right, "en", { numeric: true });
          const isMissing = [left, right].map((text) => text === "" || Number.isNaN(Number(text)));
          // Rows without a number stay at the end.
          if (isMissing[0] || isMissing[1]) return isMissing[0] - isMissing[1];
          return sign * (Number(left) - Number(right));
        };
        body.append(...[...body.rows].sort(compare));
        show();
      });
    });
    box.querySelector(".tools").hidden = false;
    filter.hidden = rows.length < 8;
    show();
  };

  // Counts by model, name and threshold are in the box's data attribute.
  const setUpExplorer = (box) => {
    const slider = box.querySelector("input");
    const { candidate, baseline } = JSON.parse(box.dataset.counts);
    const measure = (counts, at) => {
      const [tp, fp, tn, fn] = ["tp", "fp", "tn", "fn"].map((name) => counts[name][at]);
      return {
        precision: tp / (tp + fp), recall: tp / (tp + fn), fpr: fp / (fp + tn),
        accuracy: (tp + tn) / (tp + fp + tn + fn), f1: 2 * tp / (2 * tp + fp + fn), tp, fp, fn, tn,
      };
    };
    const before = measure(candidate, slider.defaultValue);
    const served = Number(candidate.thresholds[slider.defaultValue].toFixed(2));
    const show = () => {
      const now = measure(candidate, slider.value);
      const last = baseline && measure(baseline, slider.value);
      for (const place of all("[data-show]", box)) {
        const name = place.dataset.show;
        const text = (value) => (Number.isNaN(value) ? "–"
          : name in candidate ? value.toLocaleString("en") : value.toFixed(3));
        const change = now[name] - before[name];
        const [value, ...notes] = place.querySelector("dd").children;
        value.textContent = text(now[name]);
        notes[0].textContent = change ? `${change > 0 ? "+" : ""}${text(change)} against ${served}` : `as at ${served}`;
        notes[1].textContent = last ? `baseline ${text(last[name])}` : "";
      }
      const threshold = candidate.thresholds[slider.value].toFixed(2);
      all("output", box).forEach((place) => { place.textContent = threshold; });
      const [precision, recall] = [now.precision, now.recall].map((x) => (x || 0).toFixed(3));
      slider.setAttribute("aria-valuetext", `${threshold}: precision ${precision}, recall ${recall}`);
    };
    slider.addEventListener("input", show);
    box.hidden = false;
    show();
  };

  // Also for fragments that the live view inserts.
  const setUp = (inside) => {
    all(".explorer", inside).forEach(setUpExplorer);
    all(".table", inside).forEach(setUpTable);
    all(".command", inside).forEach(setUpCommand);
  };
  setUp(document);
  window.setUpPage = setUp;

  const links = all("nav.sections a");
  const inView = new Set();
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) inView.add(target.id); else inView.delete(target.id);
    }
    const current = links.find((link) => inView.has(link.hash.slice(1)));
    for (const link of links) {
      if (link === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-10% 0px -60% 0px" });
  all("main > section").forEach((section) => observer.observe(section));

  // In a frame of the local server, which opens other reports: this page has no session.
  if (window.parent !== window) {
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href$='/report.html']");
      if (!link) return;
      event.preventDefault();
      window.parent.postMessage(link.href, location.origin);
    });
  }
}
