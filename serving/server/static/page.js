"use strict";

// What stands for a missing value in an input of each type, as JSON of the server.
const MISSING = { float32: "NaN", float64: "NaN", int64: "-9223372036854775808", string: '""' };
const find = (id) => document.getElementById(id);
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
let models = {};
let images = {};

async function loadModels() {
  models = await (await fetch("about")).json();
  const chosen = find("model").value;
  find("model").replaceChildren(...Object.keys(models).map((name) => new Option(name)));
  if (chosen in models) find("model").value = chosen;
  const about = models[find("model").value];
  find("version").textContent = about ? `version ${about.version}` : "has no version yet";
  return about;
}

function showForm(about) {
  images = {};
  find("answer").replaceChildren();
  const fields = about ? about.inputs.map(makeField) : [];
  find("form").replaceChildren(...fields, ...(about ? [make("button", {}, "Ask")] : []));
}

function makeField(input) {
  if (input.kind === "image") return makeDrop(input);
  const list = input.rank === 1 ? "" : ", a list such as [1, 2]";
  const note = `${input.dtype}${list}${input.required ? "" : ", empty if it is missing"}`;
  const box = make("input", { name: input.input, required: Boolean(input.required) });
  return make("label", {}, input.feature, box, make("small", {}, note));
}

function makeDrop(input) {
  const file = make("input", { type: "file", name: input.input, accept: "image/*" });
  const picture = make("img", { alt: "the chosen image", hidden: true });
  const label = make("label", {}, `${input.feature}: drop an image here, or choose one`, file);
  const drop = make("div", { className: "drop" }, label, picture);
  const take = async (chosen) => {
    if (!chosen) return;
    const bytes = new Uint8Array(await chosen.arrayBuffer());
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) {
      text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    }
    images[input.input] = JSON.stringify({ b64: btoa(text) });
    picture.src = URL.createObjectURL(chosen);
    picture.hidden = false;
    await ask();
  };
  file.onchange = () => take(file.files[0]);
  drop.ondragover = (event) => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    take(event.dataTransfer.files[0]);
  };
  return drop;
}

// Numbers stay text: those of 64 bits are no numbers of JavaScript.
function valueOf(input) {
  if (input.kind === "image") {
    if (!images[input.input]) throw new Error(`${input.feature}: choose an image`);
    return images[input.input];
  }
  const text = find("form").elements[input.input].value.trim();
  if (input.rank !== 1) return JSON.stringify(text ? JSON.parse(text) : []);
  if (!text) return MISSING[input.dtype] ?? "0";
  if (input.dtype === "string") return JSON.stringify(text);
  const isNumber = input.dtype.includes("int") ? /^-?\d+$/.test(text) : Number.isFinite(Number(text));
  if (!isNumber) throw new Error(`${input.feature}: ${text} is not of the type ${input.dtype}`);
  return input.dtype.includes("int") ? text : String(Number(text));
}

async function ask(isRepeated = false) {
  const name = find("model").value;
  const about = models[name];
  try {
    const values = about.inputs.map((input) => `${JSON.stringify(input.input)}: [${valueOf(input)}]`);
    const body = `{"signature_name": ${JSON.stringify(about.signature)}, "inputs": {${values.join(", ")}}}`;
    const url = `v1/models/${encodeURIComponent(name)}/versions/${about.version}:predict`;
    const response = await fetch(url, { method: "POST", body });
    // Another version is served meanwhile.
    if (response.status === 404 && !isRepeated) return void ((await loadModels()) && (await ask(true)));
    const answer = parse(await response.text());
    if (!response.ok) throw new Error(answer.error);
    showAnswer(answer.outputs, about);
  } catch (error) {
    find("answer").replaceChildren(make("p", { className: "wrong" }, error.message));
  }
}

// NaN is no JSON in a browser.
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(text.replace(/-?\b(NaN|Infinity)\b/g, '"$1"'));
  }
}

function showAnswer(outputs, about) {
  const label = outputs.label && [outputs.label[0]].flat()[0];
  const rows = [];
  if (outputs.probabilities && about.classes) {
    let values = outputs.probabilities[0];
    if (values.length === 1 && about.classes.length === 2) values = [1 - values[0], values[0]];
    values.forEach((value, index) => rows.push([about.classes[index], value]));
    rows.sort((one, other) => other[1] - one[1]);
  } else if (outputs.prediction) {
    outputs.prediction[0].forEach((value, index) => rows.push([about.targets?.[index] ?? "prediction", value]));
  } else {
    rows.push(["answer", JSON.stringify(outputs)]);
  }
  const body = rows.slice(0, 20).map(([name, value]) => {
    const bar = outputs.probabilities && about.classes ? [make("td", {}, make("meter", { value, title: value }))] : [];
    const shown = typeof value === "number" ? value.toPrecision(4) : value;
    return make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, shown), ...bar);
  });
  const head = label === undefined ? [] : [make("p", {}, make("strong", {}, label), ` of version ${about.version}`)];
  find("answer").replaceChildren(...head, make("table", {}, make("tbody", {}, ...body)));
}

find("model").onchange = () => loadModels().then(showForm);
find("form").onsubmit = (event) => {
  event.preventDefault();
  ask();
};
loadModels().then(showForm);
