"use strict";
// Everything can be read without this; it sorts, filters and remembers the theme.

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

document.addEventListener("DOMContentLoaded", () => {
  themeButton();
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("form.filter").forEach(filter);
});
