"use strict";
// Everything can be read without this; it sorts, filters, saves and remembers the theme.

const THEMES = ["system", "light", "dark"];

function theme(choice) {
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

function remembered() {
  try { return localStorage.getItem("theme") ?? "system"; } catch { return "system"; }
}

theme(remembered());

function themeButton() {
  const button = document.querySelector("#theme");
  let now = Math.max(0, THEMES.indexOf(remembered()));
  const show = () => { button.textContent = `Theme: ${THEMES[now]}`; };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    now = (now + 1) % THEMES.length;
    theme(THEMES[now]);
    try { localStorage.setItem("theme", THEMES[now]); } catch { /* a page without storage forgets it */ }
    show();
  });
}

// The number that a cell begins with, behind < or a sign; NaN for text.
function number(text) {
  return parseFloat(text.replaceAll(",", "").replace(/^[<\s]+/, ""));
}

function sortBy(table, column, up) {
  const body = table.tBodies[0];
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (!x || !y) return !x - !y;
    const [m, n] = [number(x), number(y)];
    const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y, "en", {numeric: true}) : m - n;
    return up ? order : -order;
  };
  body.append(...[...body.rows].sort(compare));
  [...table.tHead.rows[0].cells].forEach((cell, place) => {
    if (place === column) cell.setAttribute("aria-sort", up ? "ascending" : "descending");
    else cell.removeAttribute("aria-sort");
  });
}

function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => sortBy(table, column, cell.getAttribute("aria-sort") !== "ascending"));
  });
}

// The table as it is shown, in the order in which it is sorted.
function csv(table) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [...table.rows].map((row) => [...row.cells].map((it) => quoted(it.innerText.trim())).join(",")).join("\r\n");
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

function saveButton(kind, what, content) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = kind;
  button.setAttribute("aria-label", `Save as ${kind}: ${what}`);
  button.addEventListener("click", async () => save(await content(), `${what}.${kind.toLowerCase()}`));
  return button;
}

function savable(table) {
  const caption = table.caption.firstElementChild, text = () => new Blob([csv(table), "\r\n"], {type: "text/csv"});
  caption.append(" ", saveButton("CSV", caption.textContent, text));
}

// A plot as it is shown: with the colours that stand behind their names, on the page's.
async function svg(view) {
  const style = getComputedStyle(document.documentElement);
  const text = (await view.toSVG()).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
  return text.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${style.getPropertyValue("--paper").trim()}"/>`);
}

async function png(view) {
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = `data:image/svg+xml,${encodeURIComponent(await svg(view))}`;
  await image.decode();
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => { canvas.toBlob(done); });
}

// Each control with data-key keeps those items whose data-KEY has its value among its words; the search, its text.
function filter(form) {
  const items = [...document.querySelectorAll(form.dataset.items)];
  const controls = [...form.querySelectorAll("[data-key]")];
  const search = form.querySelector("input[type=search]");
  const output = form.querySelector("output");
  const keeps = (item) =>
    controls.every((it) => !it.value || (item.dataset[it.dataset.key] ?? "").split(" ").includes(it.value))
    && (!search || item.textContent.toLowerCase().includes(search.value.trim().toLowerCase()));
  const apply = () => {
    for (const item of items) item.hidden = !keeps(item);
    output.textContent = `${items.filter((item) => !item.hidden).length} of ${items.length} shown`;
  };
  const read = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    for (const it of controls) if (wanted.has(it.dataset.key)) it.value = wanted.get(it.dataset.key);
    apply();
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", read);
  read();
}

// Charts: the panels of view/vega.py, which has the same `fitted` for pictures.

function wraps(text, letters) {
  return text.replace(new RegExp(`(.{1,${letters}})( |$)`, "g"), "$1\n").trim().split("\n").length;
}

function* legends(node) {
  if (typeof node !== "object" || node === null) return;
  for (const item of Object.values(node)) yield* legends(item);
  if (node.legend) yield node;
}

function fitted(panel, width) {
  const y = panel.encoding?.y ?? {};
  let room = width;
  if (y.type === "ordinal") {
    const labels = y.scale.domain, letters = Math.floor(.4 * width / 6.4);
    y.axis.labelExpr = `split(trim(replace(datum.label, regexp('(.{1,${letters}})( |$)', 'g'), '$1\\n')), '\\n')`;
    const lines = Math.max(...labels.map((label) => wraps(label, letters)));
    panel.height = labels.length * Math.max(panel.height.step, 15 * lines + 6);
    room -= 6.4 * Math.min(letters, Math.max(...labels.map((label) => label.length)));
  }
  for (const channel of legends(panel)) {
    const longest = Math.max(...channel.scale.domain.map((name) => name.length));
    channel.legend.columns = Math.max(1, Math.floor(room / (6.4 * longest + 44)));
  }
  if (panel.width) return panel;
  return {...panel, width: "container", autosize: {type: "fit-x", contains: "padding"}};
}

function heightOf({height, encoding}) {
  return 60 + (height.step ? height.step * encoding.y.scale.domain.length : height);
}

// Charts are drawn when they come near the screen, the others when the browser has time, so that a page can be printed.
function charts() {
  const ready = () => { document.documentElement.dataset.charts = "ready"; };
  if (!window.vegaEmbed) return ready();  // without the script beside the page, the numbers stay open
  document.querySelectorAll("details.numbers").forEach((it) => it.removeAttribute("open"));
  const config = {...window.chartConfig, font: getComputedStyle(document.body).fontFamily};
  const waiting = new Map(), begun = [];
  const draw = (box) => {
    const panel = waiting.get(box);
    if (!panel) return;
    waiting.delete(box);
    near.unobserve(box);
    const options = {ast: true, actions: false, renderer: "svg", logLevel: 1, config};
    const name = box.closest("figure").querySelector("figcaption").textContent;
    begun.push(vegaEmbed(box, fitted(panel, box.clientWidth), options).then(({view}) => {
      const picture = async () => new Blob([await svg(view)], {type: "image/svg+xml"});
      box.append(saveButton("SVG", name, picture), " ", saveButton("PNG", name, () => png(view)));
      box.style.minHeight = "";
    }));
  };
  const near = new IntersectionObserver(
    (entries) => entries.filter((it) => it.isIntersecting).forEach((it) => draw(it.target)), {rootMargin: "400px"});
  for (const figure of document.querySelectorAll(".charts")) {
    for (const panel of JSON.parse(figure.firstElementChild.textContent)) {
      const box = document.createElement("div");
      box.style.minHeight = `${heightOf(panel)}px`;
      figure.append(box);
      waiting.set(box, panel);
      near.observe(box);
    }
  }
  const later = window.requestIdleCallback ?? ((task) => setTimeout(task, 50));
  const next = () => {
    for (const box of waiting.keys()) { draw(box); break; }
    if (waiting.size) later(next);
    else Promise.all(begun).then(ready);
  };
  later(next);
  window.addEventListener("beforeprint", () => [...waiting.keys()].forEach(draw));
}

// What a reader has opened stays open when the page of a running sweep reloads itself.
function keepOpen() {
  if (!document.querySelector("meta[http-equiv=refresh]")) return;
  const all = [...document.querySelectorAll("details")];
  const name = (it) => (it.closest("figure") ?? it).firstElementChild.textContent;
  try {
    const open = JSON.parse(sessionStorage.getItem(location.pathname) ?? "[]");
    all.forEach((it) => { it.open ||= open.includes(name(it)); });
    window.addEventListener("pagehide", () => sessionStorage.setItem(
      location.pathname, JSON.stringify(all.filter((it) => it.open).map(name))));
  } catch { /* a page without storage forgets it */ }
}

document.addEventListener("DOMContentLoaded", () => {
  charts();
  keepOpen();
  themeButton();
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("table").forEach(savable);
  document.querySelectorAll("form.filter").forEach(filter);
});
