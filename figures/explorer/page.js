// The page: what is chosen, and what `theory.js` says of it.
"use strict";

const $ = id => document.getElementById(id);
const FORMS = new Map(PAPERS.flatMap(p => p.results).flatMap(r => r.forms).map(f => [`${f.result.key}[${f.name}]`, f]));
const CONCEPTS = new Set([...FORMS.values()].flatMap(f => Object.values(f.theory.symbols)).map(symbol => symbol.concept));
const state = { form: null, values: {}, given: new Set(), assumed: new Set(), over: "", beside: "",
  refused: new Map(), refusedBeside: new Map() }; // by symbol, why what its field holds is no value

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "html") node.innerHTML = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}
const options = (select, items, chosen) => {
  select.replaceChildren(...items.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
};
const symbolOf = name => state.form.theory.symbols[name];
const valueOf = symbol => {
  const value = state.values[symbol.concept];
  return Array.isArray(value) === symbol.vector && value !== undefined ? value : symbol.start;
};
const given = () => Object.fromEntries([...state.given].map(name => [name, valueOf(symbolOf(name))]));
const assumed = () => state.form.assumptions.map(a => a.name).filter(name => state.assumed.has(name));
const relation = form => form.order_only ? "~" : "≤";

// --- Constants as text and as positions of sliders -------------------------------------------------------------------

function parsed(text, symbol) {
  const one = part => {
    const [above, below, ...rest] = part.trim().replace(/^inf$/, "Infinity").split("/");
    const value = rest.length || !above.trim() || below?.trim() === "" ? NaN : Number(above) / Number(below ?? 1);
    if (Number.isNaN(value)) throw Error(`${part.trim() || "nothing"} is not a number, such as 0.01, 1e-3 or 1/3`);
    return value;
  };
  const parts = text.split(",").filter((part, i, all) => part.trim() || i < all.length - 1);
  const value = symbol.vector ? parts.map(one) : one(text);
  check(symbol, value);
  return value;
}

const POSITIONS = 400;
function scaleOf(symbol) {
  const { low, high, low_open, high_open, integer, infinite } = symbol.domain, usual = entries(symbol.start)[0];
  if (Number.isFinite(low) && Number.isFinite(high)) {
    const width = high - low, [a, b] = [low + (low_open ? width / POSITIONS : 0), high - (high_open ? width / POSITIONS : 0)];
    return { log: false, low: a, high: b };
  }
  if (low < 0) return { log: false, low: -10 * Math.max(1, usual), high: 10 * Math.max(1, usual) };
  const middle = usual > 0 ? usual : 1;
  return { log: true, low: Math.max(low, integer ? 1 : 0, middle / 1e4), high: middle * 1e4,
    zero: low === 0 && !low_open, endless: infinite };
}

function valueAt(position, symbol) {
  const { log, low, high, zero, endless } = scaleOf(symbol), share = position / POSITIONS;
  if (position === 0 && zero) return 0;
  if (position === POSITIONS && endless) return Infinity;
  const value = log ? low * Math.pow(high / low, share) : low + (high - low) * share;
  return symbol.domain.integer ? Math.round(value) : Math.min(high, Math.max(low, Number(value.toPrecision(3))));
}

function positionOf(value, symbol) {
  const { log, low, high } = scaleOf(symbol);
  const share = log ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
  return value === 0 && log ? 0 : Math.round(POSITIONS * Math.min(1, Math.max(0, share)));
}

function row(symbol, isGiven, set) { // calls `set` with the new value, or with null and the reason
  const id = `constant-${isGiven ? "" : "derived-"}${symbol.name}`, value = valueOf(symbol);
  const problem = el("div", { class: "problem", id: `${id}-problem`, role: "alert" });
  const field = el("input", { id, value: isGiven ? typed(value) : "", size: 12, autocomplete: "off", spellcheck: "false",
    "aria-describedby": `${id}-problem`, "data-symbol": symbol.name });
  const tell = said => { problem.textContent = said; field.setAttribute("aria-invalid", said ? "true" : "false"); };
  const sliders = isGiven ? entries(value).map((one, i) => el("input", {
    type: "range", min: 0, max: POSITIONS, value: positionOf(one, symbol), title: symbol.meaning,
    "aria-label": `${symbol.name}${symbol.vector ? ` of client ${i + 1}` : ""}`,
    oninput: event => {
      const now = valueAt(Number(event.target.value), symbol), all = valueOf(symbol);
      let next = symbol.vector ? all.map((old, k) => k === i ? now : old) : now;
      if (symbol.total !== null) { // the others share what is left
        const rest = sum(all) - all[i], left = Math.max(0, symbol.total - now);
        next = all.map((old, k) => k === i ? now : rest > 0 ? old / rest * left : left / (all.length - 1));
      }
      field.value = typed(next);
      tell("");
      set(next);
    },
  })) : [];
  field.addEventListener("input", () => {
    try {
      const next = field.value.trim() ? parsed(field.value, symbol) : null;
      tell("");
      if (next !== null) entries(next).forEach((one, i) => { if (sliders[i]) sliders[i].value = positionOf(one, symbol); });
      set(next);
    } catch (error) {
      tell(error.message);
      set(null, error.message);
    }
  });
  const name = el("label", { for: id, html: symbol.math });
  name.append(el("span", {}, `${symbol.name}: ${symbol.meaning}${symbol.unit === "1" ? "" : ` (${symbol.unit})`}`));
  const under = symbol.vector && sliders.length ? [el("details", {}, el("summary", {}, "by client"), ...sliders)] : sliders;
  return el("div", { class: "row", title: symbol.domain.text }, name, field, ...under, problem);
}

// --- What is chosen --------------------------------------------------------------------------------------------------

function choose(form, names = form.given) {
  state.form = form;
  state.given = new Set(names);
  if (!form.reach.includes(state.over) || symbolOf(state.over).vector) {
    const scalars = form.reach.filter(name => !symbolOf(name).vector);
    state.over = scalars.find(name => ["rounds", "iterations"].includes(symbolOf(name).concept)) ?? scalars[0] ?? "";
  }
  show();
}

function change(symbol, value, problem = "") {
  const before = state.given.has(symbol.name);
  remember(state.refused, symbol, problem);
  if (value === null) state.given.delete(symbol.name);
  else {
    state.values[symbol.concept] = value;
    state.given.add(symbol.name);
  }
  if (before !== state.given.has(symbol.name) && state.form.given.includes(symbol.name)) placeholders();
  refresh();
}

function remember(refused, symbol, problem) {
  if (problem) refused.set(symbol.name, problem);
  else refused.delete(symbol.name);
}

function show() { // everything, as after a choice
  const { form } = state, { result } = form;
  state.refused.clear(); // the fields are made anew
  const paper = PAPERS.find(p => p.results.includes(result));
  $("result").replaceChildren(...PAPERS.map(p => el("optgroup", { label: p.key }, ...p.results.map(r =>
    el("option", { value: r.key, selected: r === result }, `${r.key.split("/")[1]}: ${r.title}`)))));
  options($("form"), result.forms.map(f => [f.name, `${f.name} (${f.verdict})`]), form.name);
  $("about").replaceChildren(
    el("span", {}, `${result.source}. ${result.statement} `), el("br"),
    el("small", {}, `${form.note}${form.reading ? `; ${form.reading}` : ""}. ${paper.reference}`));
  const scalars = form.reach.filter(name => !symbolOf(name).vector);
  options($("over"), scalars.map(name => [name, `${name}: ${symbolOf(name).meaning}`]), state.over);
  const others = [...FORMS].filter(([, f]) => f !== form), fits = f => comparable(form, f, MEASURES).ok;
  const listed = test => others.filter(([, f]) => test(f)).map(([key]) => el("option", { value: key, selected: key === state.beside }, key));
  $("beside").replaceChildren(el("option", { value: "" }, "nothing"),
    el("optgroup", { label: "comparable" }, ...listed(fits)),
    el("optgroup", { label: "not comparable (says why)" }, ...listed(f => !fits(f))));
  $("given").replaceChildren(...form.given.map(name => row(symbolOf(name), state.given.has(name), (v, problem) => change(symbolOf(name), v, problem))));
  const rest = form.reach.filter(name => !form.given.includes(name));
  $("derived").replaceChildren(...rest.map(name => row(symbolOf(name), state.given.has(name), (v, problem) => change(symbolOf(name), v, problem))));
  $("others").hidden = rest.length === 0;
  if (rest.some(name => state.given.has(name))) $("others").open = true;
  $("assumptions").hidden = form.assumptions.length === 0;
  $("assumptions").replaceChildren($("assumptions").firstElementChild, ...form.assumptions.map(a => {
    const box = el("input", { type: "checkbox", checked: state.assumed.has(a.name), onchange: event => {
      state.assumed[event.target.checked ? "add" : "delete"](a.name);
      refresh();
    } });
    return el("label", {}, box, ` ${a.name} (${a.label}): ${a.statement}`);
  }), el("button", { type: "button", onclick: () => {
    form.assumptions.forEach(a => state.assumed.add(a.name));
    show();
  } }, "all of them"));
  $("errata").replaceChildren(...result.errata.map(e => el("details", {},
    el("summary", {}, `${e.id} (${e.degree}): ${e.where}`),
    el("p", {}, el("b", {}, "Claimed: "), e.claim), el("p", {}, el("b", {}, "Why it fails: "), e.fails),
    el("p", {}, el("b", {}, "Instead: "), e.instead), el("p", {}, el("code", {}, `fedbounds refute ${e.id}`)))),
    ...(result.errata.length ? [] : ["None that we know of."]));
  own();
  refresh();
}

// --- What follows ----------------------------------------------------------------------------------------------------

function placeholders(known = {}) {
  for (const field of document.querySelectorAll("#given input[data-symbol], #derived input[data-symbol]")) {
    const found = known[field.dataset.symbol];
    field.placeholder = state.given.has(field.dataset.symbol) ? "" : found ? number(found.value) : "not known";
    field.title = found && !state.given.has(field.dataset.symbol) ? found.note : "";
  }
}

let waiting = 0;
function refresh() {
  answer();
  copies();
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
}

function answer() {
  const { form } = state, measure = MEASURES[form.measure];
  let found;
  try {
    for (const problem of state.refused.values()) throw Error(problem);
    found = evaluate(form, given(), assumed());
  } catch (error) {
    placeholders();
    $("bound").replaceChildren(el("p", { html: measure.math }), el("p", { class: "problem" }, `no value: ${error.message}`));
    $("terms").replaceChildren();
    $("conditions").replaceChildren();
    return;
  }
  placeholders(found.known);
  const value = Number.isNaN(found.value) ? "no value" : `${relation(form)} ${number(found.value)}`;
  const promise = found.guarantee ? `yes${form.conditional_on ? `, conditional on ${form.conditional_on} (${form.verdict})` : ""}` : "no";
  $("bound").replaceChildren(
    el("div", { html: measure.math }), el("div", {}, measure.text),
    el("div", { class: "value", id: "value" }, value),
    el("div", {}, "guarantee: ", el("b", { class: found.guarantee ? "yes" : "no", id: "guarantee" }, promise),
      ` · valid: ${found.valid ? "yes" : "no"} · verdict: ${form.verdict} · dominant: ${found.dominant || "none"}`),
    el("ul", {}, ...found.why_not.map(reason => el("li", {}, reason))));
  if (form.hides) $("bound").append(el("p", {}, `hides ${form.hides}`));
  const cell = (text, kind = "number") => el("td", { class: kind }, text);
  $("terms").replaceChildren(el("table", {}, ...form.terms.map((term, i) =>
    el("tr", { class: term.name === found.dominant ? "dominant" : "" }, el("th", { scope: "row" }, term.name),
      cell(number(found.terms[i])), cell(Number.isNaN(found.shares[i]) ? "-" : `${(100 * found.shares[i]).toFixed(1)}%`),
      el("td", {}, el("meter", { value: found.shares[i] || 0, "aria-label": `share of ${term.name}` })),
      el("td", { html: term.math })))),
    ...form.where.map(math => el("div", { html: math })));
  for (const [name, step] of Object.entries(found.prescribed)) {
    $("terms").append(el("p", {}, `the result prescribes ${name} = ${number(step)}`));
  }
  $("conditions").replaceChildren(el("table", {}, ...found.conditions.map((c, i) => el("tr", {},
    el("td", { class: `number ${c.holds ? "yes" : "no"}` }, c.holds ? "✓ holds" : "✗ fails"),
    cell(`${number(c.left)} ${c.op} ${number(c.right)}`), el("td", {}, ...limit(c, i)),
    el("td", { title: c.text }, el("div", { html: c.math }), el("small", {}, c.why))))),
    ...largest(found));
  if (!found.conditions.length) $("conditions").replaceChildren("None.");
}

function limit(c, place) { // where both sides are equal: a button, if that constant is given
  if (c.admissible === undefined || !c.limits) return [];
  const text = `${c.limits} at ${number(c.admissible)}`;
  if (!state.given.has(c.limits)) return [text];
  if (!symbolOf(c.limits).domain.integer) return [el("button", { type: "button", onclick: () => use(c.limits, c.admissible) }, text)];
  const [low, high] = [floor(c.admissible), ceiling(c.admissible)];
  const next = [low, high, low - 1, high + 1].find(value => {
    try { return evaluate(state.form, { ...given(), [c.limits]: value }, [], false).conditions[place].holds; } catch { return false; }
  });
  if (next === undefined) return [text];
  const aside = next === c.admissible ? "" : ` (equal at ${number(c.admissible)})`;
  return [el("button", { type: "button", onclick: () => use(c.limits, next) }, `${c.limits} at ${number(next, 15)}${aside}`)];
}

function use(name, value) {
  const symbol = symbolOf(name);
  if (!contains(symbol.domain, value)) return;
  state.values[symbol.concept] = value;
  show();
}

// The largest value of each step size that every condition with a closed form admits, the other constants as they are.
function largest(found) {
  const steps = [...state.given].filter(name => /step/.test(symbolOf(name).concept) && !symbolOf(name).vector && !symbolOf(name).domain.integer);
  return steps.flatMap(name => {
    const caps = found.conditions.flatMap((c, i) => {
      if (c.limits !== name || !(c.admissible > 0)) return [];
      try {
        const beyond = evaluate(state.form, { ...given(), [name]: 1.01 * c.admissible }, [], false).conditions[i];
        return beyond.holds ? [] : [c.admissible];
      } catch { return []; }
    });
    if (!caps.length) return [];
    const most = Math.min(...caps);
    return [el("p", {}, `largest admissible ${name}: ${number(most)} `,
      el("button", { type: "button", class: "largest", onclick: () => use(name, most) }, "use"))];
  });
}

// --- The curve -------------------------------------------------------------------------------------------------------

function besideGiven(form, known) { // constants of the second form: those of the first by concept, else its own
  const concepts = Object.fromEntries(Object.entries(known).map(([name, one]) => [symbolOf(name).concept, one.value]));
  const over = symbolOf(state.over)?.concept;
  const names = form.reach.filter(name => form.given.includes(name) || form.theory.symbols[name].concept === over);
  return Object.fromEntries(names.map(name => {
    const symbol = form.theory.symbols[name], value = concepts[symbol.concept];
    return [name, Array.isArray(value) === symbol.vector && value !== undefined ? value : valueOf(symbol)];
  }));
}

function own() { // constants that the second form alone has
  const form = FORMS.get(state.beside), here = new Set(state.form.reach.map(name => symbolOf(name).concept));
  const symbols = form ? form.given.map(name => form.theory.symbols[name]).filter(symbol => !here.has(symbol.concept)) : [];
  state.refusedBeside.clear();
  $("own").replaceChildren(...(symbols.length ? [el("p", {}, `Constants that only ${state.beside} has`)] : []),
    ...symbols.map(symbol => row(symbol, true, (value, problem = `needs ${symbol.name} (${symbol.meaning})`) => {
      remember(state.refusedBeside, symbol, value === null ? problem : "");
      if (value !== null) state.values[symbol.concept] = value;
      refresh();
    })));
}

function curve(form, constants, concept, settings) {
  const name = form.reach.find(one => form.theory.symbols[one].concept === concept);
  return settings.map(setting => {
    try { return evaluate(form, name ? { ...constants, [name]: setting } : constants, [], false); } catch { return null; }
  });
}

function decades(u, axis, low, high) { // ticks of a logarithmic axis; the library's own never end for tiny numbers
  const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)], step = Math.ceil((b - a + 1) / 9);
  return each(Math.floor((b - a) / step) + 1, k => Number(`1e${a + k * step}`));
}

function steps(u, axis, low, high) {
  const rough = (high - low) / 6, ten = Math.pow(10, Math.floor(Math.log10(rough))), step = ten * [1, 2, 5, 10].find(k => k * ten >= rough);
  return each(Math.floor(high / step) - Math.ceil(low / step) + 1, k => step * (Math.ceil(low / step) + k));
}

const whole = (u, low, high) => [Math.pow(10, Math.floor(Math.log10(low))), Math.pow(10, Math.floor(Math.log10(high)) + 1)];
const around = (u, low, high) => low === high ? [low - Math.abs(low || 1), high + Math.abs(high || 1)] : [low, high];

let plot = null;
function draw() {
  plot?.destroy();
  plot = null;
  $("caption").textContent = "";
  const { form } = state, symbol = symbolOf(state.over);
  if (!symbol) return;
  if (state.refused.size) {
    $("caption").textContent = "Nothing is drawn while a constant has no value.";
    return;
  }
  const { log } = scaleOf(symbol), here = given(), second = FORMS.get(state.beside);
  const settings = [...new Set(each(81, k => valueAt(Math.round(k * POSITIONS / 80), symbol)))]
    .filter(x => Number.isFinite(x) && (x > 0 || !log)).sort((a, b) => a - b);
  const rows = [curve(form, here, symbol.concept, settings)], said = [];
  let fits = { ok: false, why: "" }, known = {};
  try { known = resolve(form, here); } catch { /* told by the answer */ }
  if (second) {
    fits = comparable(form, second, MEASURES);
    for (const why of state.refusedBeside.values()) fits = { ok: false, why };
    if (fits.why) said.push(fits.ok ? fits.why : `${state.beside} is not drawn: ${fits.why}`);
    if (fits.ok) {
      const constants = besideGiven(second, known);
      rows.push(curve(second, constants, symbol.concept, settings));
      try { resolve(second, constants); } catch (error) { said.push(`${state.beside}: ${error.message}`); }
      said.push(...second.caveats.map(reason => `${state.beside}: ${reason}`));
    }
  }
  const pick = test => found => found && Number.isFinite(found.value) && test(found.valid) ? found.value : null;
  const current = known[state.over]?.value, x = [...settings];
  if (Number.isFinite(current) && (current > 0 || !log) && !x.includes(current)) x.push(current);
  x.sort((a, b) => a - b);
  const places = x.map(value => settings.indexOf(value));
  const data = [x, ...rows.flatMap(row => [v => v, v => !v].map(test => places.map(k => k < 0 ? undefined : pick(test)(row[k]))))];
  let now = null;
  try { now = evaluate(form, here, [], false).value; } catch { /* told by the answer */ }
  data.push(x.map(value => value === current && Number.isFinite(now) ? now : null));
  const flat = data.slice(1).flat().filter(v => v !== null && v !== undefined), positive = flat.every(v => v > 0);
  const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const figures = (u, values) => values.map(v => v === null ? "" : number(v, 3));
  const axis = (label, log) => ({ label, splits: log ? decades : steps, stroke: ink("--ink"), grid: { stroke: ink("--line"), width: 0.5 }, ticks: { stroke: ink("--line") }, values: figures });
  const line = (label, color, dash) => ({ label, stroke: ink(color), width: 2, dash, spanGaps: true, points: { show: false }, value: (u, v) => v === null || v === undefined ? "-" : number(v) });
  const names = [form.result === second?.result ? form.name : `${form.result.key.split("/")[1]} [${form.name}]`, state.beside];
  if (flat.length) {
    const series = rows.flatMap((_, i) => [line(names[i], i ? "--second" : "--first"), line("… a condition fails", i ? "--second" : "--first", [3, 5])]);
    series.forEach(one => { one.spanGaps = false; });
    plot = new uPlot({
      width: $("plot").clientWidth, height: 250, cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, distr: log ? 3 : 1, range: around }, y: { distr: positive ? 3 : 1, range: positive ? whole : around } },
      axes: [axis(state.over, log), { ...axis(`bound (${relation(form)})`, positive), size: 75 }],
      series: [{ label: state.over, value: (u, v) => v === null ? "-" : number(v) }, ...series,
        { label: "here", stroke: ink("--ink"), points: { show: true, size: 9, fill: ink("--first") }, value: (u, v) => v === null || v === undefined ? "-" : number(v) }],
    }, data, $("plot"));
  } else said.push("there is no finite value to draw");
  const regimes = [];
  rows[0].forEach((found, i) => {
    if (found?.dominant && regimes.at(-1)?.name !== found.dominant) regimes.push({ name: found.dominant, from: settings[i] });
  });
  if (regimes.length) said.unshift(`dominant: ${regimes.map((r, i) => i ? `${r.name} from ${state.over} = ${number(r.from, 3)}` : r.name).join(", ")}`);
  if (rows.flat().some(found => found && !found.valid)) said.push("dotted where a condition fails: no bound is claimed there");
  $("caption").textContent = said.length ? `${said.join(". ")}.` : "";
  $("plot").setAttribute("role", "img");
  $("plot").setAttribute("aria-label", `bound over ${state.over}; ${$("caption").textContent}`);
}

// --- Links and copies ------------------------------------------------------------------------------------------------

function link() {
  const { form } = state, words = new URLSearchParams({ result: form.result.key, form: form.name });
  for (const [name, value] of Object.entries(given())) words.set(name, typed(value));
  if (assumed().length) words.set("assume", assumed().join(","));
  if (state.over) words.set("over", state.over);
  if (state.beside) {
    words.set("beside", state.beside);
    for (const field of $("own").querySelectorAll("input[data-symbol]")) {
      const symbol = FORMS.get(state.beside).theory.symbols[field.dataset.symbol];
      words.set(symbol.concept, typed(valueOf(symbol)));
    }
  }
  return `#${words}`;
}

function restore() {
  const words = new URLSearchParams(location.hash.slice(1)), result = PAPERS.flatMap(p => p.results).find(r => r.key === words.get("result"));
  const form = result?.forms.find(f => f.name === words.get("form")) ?? result?.forms.find(f => f.name === result.default);
  if (!form) return false;
  state.form = form;
  state.values = {};
  const names = [];
  for (const [name, text] of words) {
    const symbol = Object.hasOwn(form.theory.symbols, name) ? form.theory.symbols[name] : undefined;
    const other = !symbol && CONCEPTS.has(name) && [...FORMS.values()].flatMap(f => Object.values(f.theory.symbols)).find(one => one.concept === name);
    try {
      if (symbol || other) state.values[(symbol || other).concept] = parsed(text, symbol || other);
      if (symbol && form.reach.includes(name)) names.push(name);
    } catch { /* what is no legal value keeps its start */ }
  }
  state.assumed = new Set((words.get("assume") ?? "").split(","));
  if (words.get("assume") === "all") state.assumed = new Set(form.assumptions.map(a => a.name));
  state.over = form.reach.includes(words.get("over")) ? words.get("over") : "";
  state.beside = FORMS.has(words.get("beside")) ? words.get("beside") : "";
  try { resolve(form, Object.fromEntries(names.map(name => [name, valueOf(symbolOf(name))]))); } catch { names.push(...form.given); }
  choose(form, names);
  return true;
}

function copies() {
  const hash = link(), kind = $("language").value;
  if (hash !== location.hash) history.replaceState(null, "", hash);
  $("text").value = state.refused.size ? "" : kind === "link" ? location.href.split("#")[0] + hash : commands(state.form, given(), assumed())[kind];
  $("copied").textContent = "";
}

$("result").addEventListener("change", event => {
  const result = PAPERS.flatMap(p => p.results).find(r => r.key === event.target.value);
  choose(result.forms.find(f => f.name === result.default));
});
$("form").addEventListener("change", event => choose(state.form.result.forms.find(f => f.name === event.target.value)));
$("over").addEventListener("change", event => { state.over = event.target.value; refresh(); });
$("beside").addEventListener("change", event => { state.beside = event.target.value; own(); refresh(); });
$("language").addEventListener("change", copies);
$("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText($("text").value); } catch { $("text").select(); document.execCommand("copy"); }
  $("copied").textContent = "copied";
});
window.addEventListener("hashchange", restore);
window.addEventListener("resize", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
if (!restore()) {
  const first = PAPERS[0].results[0];
  choose(first.forms.find(f => f.name === first.default));
}
