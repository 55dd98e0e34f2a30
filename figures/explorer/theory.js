// A form at given constants, as `fedbounds.bounds.evaluation.evaluate` has it: value, terms, conditions, and an honest word
// about the guarantee. Nothing here knows of a page, so that it is tested in Node against Python.
"use strict";

const STEP = 4 * Number.EPSILON, ROUNDING = 1e-12, AGREEMENT = 1e-9, SUM = 1e-9, REACH = 1e30;

// --- What printed expressions call -----------------------------------------------------------------------------------

const floor = x => Math.floor(x + STEP * Math.abs(x));
const ceiling = x => Math.ceil(x - STEP * Math.abs(x));
const each = (count, of) => Array.from({ length: count }, (_, n) => of(n));
const sum = values => values.reduce((total, value) => total + value, 0);
const sum_clients = (count, of) => sum(each(count, of));
const mean_clients = (count, of) => sum_clients(count, of) / count;
const max_clients = (count, of) => Math.max(...each(count, of));
const median_clients = (count, of) => {
  const sorted = each(count, of).sort((a, b) => a - b);
  return (sorted[(count - 1) >> 1] + sorted[count >> 1]) / 2;
};

// --- Numbers in words ------------------------------------------------------------------------------------------------

function number(x, digits = 6) { // as Python's %.6g
  if (Array.isArray(x)) return x.map(one => number(one, digits)).join(", ");
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
  const [mantissa, power] = x.toExponential(digits - 1).split("e"), exponent = Number(power);
  const bare = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  if (exponent >= -4 && exponent < digits) return bare(x.toFixed(Math.max(0, digits - 1 - exponent)));
  return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

const typed = x => Array.isArray(x) ? x.map(typed).join(",") + (x.length === 1 ? "," : "")
  : Number.isFinite(x) ? String(x) : number(x);

// --- A paper as it is read -------------------------------------------------------------------------------------------

function assembled(paper, functions) {
  const theories = paper.notations.map(({ symbols, floors }) => {
    for (const { domain } of Object.values(symbols)) [domain.low, domain.high] = [Number(domain.low), Number(domain.high)];
    return { symbols, floors, rules: paper.rules };
  });
  let place = 0;
  for (const result of paper.results) {
    for (const form of result.forms) Object.assign(form, { result, compute: functions[place++], theory: theories[result.notation] });
  }
  return paper;
}

// --- Constants: validated, derived, none contradicting another -------------------------------------------------------

const entries = value => Array.isArray(value) ? value : [value];

function contains(domain, v) {
  const inside = (domain.low_open ? v > domain.low : v >= domain.low)
    && (domain.high_open ? v < domain.high : v <= domain.high);
  const endless = domain.infinite && v === Infinity;
  return inside && (endless || (Number.isFinite(v) && !(domain.integer && v !== Math.floor(v))));
}

function check(symbol, value) {
  if (symbol.vector !== Array.isArray(value) || entries(value).length === 0) {
    throw Error(`${symbol.name} needs ${symbol.vector ? "one number per client" : "one number"}: ${symbol.meaning}`);
  }
  entries(value).forEach((v, n) => {
    const name = symbol.vector ? `${symbol.name}[${n}]` : symbol.name;
    if (!contains(symbol.domain, v)) {
      throw Error(`${name} = ${number(v, 12)} is outside its domain ${symbol.domain.text}: ${symbol.meaning}`);
    }
    if (Number.isFinite(v) && v !== 0 && !(Math.abs(v) <= REACH && Math.abs(v) >= 1 / REACH)) {
      throw Error(`${name} = ${number(v, 12)}: this page computes between 1e-30 and 1e+30; fedbounds eval goes beyond`);
    }
  });
  if (symbol.total !== null && !(Math.abs(sum(value) - symbol.total) <= SUM)) {
    throw Error(`${symbol.name} sums to ${number(sum(value), 12)}, not to ${symbol.total}: ${symbol.meaning}`);
  }
}

const close = (a, b) => a === b || Math.abs(a - b) <= AGREEMENT * Math.abs(b);
const admits = (free, given, derived) => close(given, derived) || free === true
  || (free === "upwards" && given > derived) || (free === "downwards" && given < derived);
const applied = (rule, known) => rule.compute(Object.fromEntries(rule.inputs.map(i => [i, known[i].value])));

function derive(form, name, known, pending = []) {
  if (name in known) return true;
  for (const rule of form.rules.map(k => form.theory.rules[k])) {
    const inside = [...pending, name];
    if (rule.name !== name || pending.includes(name)) continue;
    if (!rule.inputs.every(i => derive(form, i, known, inside))) continue;
    const value = applied(rule, known);
    try {
      check(form.theory.symbols[name], value);
    } catch (error) {
      const from = rule.inputs.map(i => `${i} = ${number(known[i].value, 12)}`).join(", ");
      throw Error(`${error.message}; it follows from ${from} (${rule.why})`);
    }
    known[name] = { value, source: "derived", note: rule.why };
    return true;
  }
  const standard = form.theory.symbols[name].default;
  if (standard !== null) known[name] = { value: standard, source: "given", note: "default" };
  return name in known;
}

function agree(form, rule, given) {
  const others = { ...given };
  delete others[rule.name];
  let derived;
  try {
    if (!rule.inputs.every(i => derive(form, i, others, [rule.name]))) return;
    derived = entries(applied(rule, others));
  } catch { return; } // what cannot be computed has to be given
  entries(given[rule.name].value).forEach((value, n) => {
    if (admits(rule.free, value, derived[n])) return;
    const relation = { upwards: "is below", downwards: "is above" }[rule.free] ?? "conflicts with";
    throw Error(`${rule.name} = ${number(value, 12)} ${relation} ${number(derived[n], 12)}`
      + `${rule.inputs.length ? `, computed from ${rule.inputs.join(", ")}` : ""} (${rule.why})`);
  });
}

function resolve(form, given) {
  const known = {};
  for (const [name, value] of Object.entries(given)) {
    check(form.theory.symbols[name], value);
    known[name] = { value, source: "given", note: "" };
  }
  const lengths = Object.keys(given).filter(n => form.theory.symbols[n].vector).map(n => [n, given[n].length]);
  if (new Set(lengths.map(([, length]) => length)).size > 1) {
    throw Error(`the vectors over clients differ in length: ${lengths.map(([n, k]) => `${n} has ${k}`).join(", ")}`);
  }
  for (const [vector, length] of lengths.slice(0, 1)) {
    for (const name of Object.keys(given).filter(n => form.theory.symbols[n].concept === "clients")) {
      if (given[name] !== length) {
        throw Error(`${name} = ${number(given[name], 12)} conflicts with ${length}, computed from ${vector} `
          + `(the length of ${vector})`);
      }
    }
  }
  const missing = form.needed.filter(name => !derive(form, name, known));
  if (missing.length) throw Error(`needs ${missing.map(n => `${n} (${form.theory.symbols[n].meaning})`).join(", ")}`);
  const asGiven = Object.fromEntries(Object.keys(given).map(name => [name, known[name]]));
  for (const rule of form.rules.map(k => form.theory.rules[k])) {
    if (rule.name in given && rule.free !== true) agree(form, rule, asGiven);
  }
  for (const rule of form.theory.floors.map(k => form.theory.rules[k])) {
    if (rule.name in given && rule.inputs.every(i => i in known)) agree(form, rule, known);
  }
  return known;
}

// --- A form at these constants ---------------------------------------------------------------------------------------

function holds(left, op, right) {
  if (op === "<") return left < right;
  if (op === ">") return left > right;
  const [a, b] = [right * (1 + ROUNDING), right * (1 - ROUNDING)];
  const most = left <= Math.max(a, b), least = left >= Math.min(a, b);
  return op === "<=" ? most : op === ">=" ? least : most && least;
}

function impossible(form, together, known) { // why these constants do not occur together, or are not known to
  if (form.feasible === null) {
    return form.verdict === "proved" && !form.order_only ? ["which constants can occur together is not declared for this form: list its result in FEASIBLE"] : [];
  }
  const opposite = { "<=": ">", ">=": "<", "==": "!=", "<": ">=", ">": "<=" };
  const said = form.feasible.map((relation, i) => ({ ...relation, left: together[i][0], right: together[i][1] }))
    .filter(relation => !holds(relation.left, relation.op, relation.right))
    .filter(relation => !relation.witness || !form.computed_from.length || !form.computed_from.every(name => name in known));
  const { text, why, witness, left, op, right } = said.find(relation => !relation.witness) ?? said[0] ?? {};
  if (witness === undefined) return [];
  const [a, b] = [number(left, 6), number(right, 6)], names = form.computed_from.join(", ");
  if (witness && names) return [`no problem is known to have these constants: give ${names} instead of the constants computed from them`];
  return [witness ? `no problem is known to have these constants: those that are (${why}) need ${a} ${op} ${b}`
    : `no problem has these constants: ${text} (${why}), got ${a} ${opposite[op]} ${b}`];
}

function excessParticipants(form, known, conditions) { // why no run has as many, whether the form uses them or not
  const symbols = form.theory.symbols;
  const named = concept => Object.keys(known).find(name => symbols[name].concept === concept);
  const part = named("participating_clients"), whole = named("clients");
  if (!part || !whole || !conditions.every(c => c.holds) || known[part].value <= known[whole].value) return [];
  return [`no run has these constants: ${part} = ${number(known[part].value, 6)} (${symbols[part].meaning}) exceeds `
    + `${whole} = ${number(known[whole].value, 6)} (number of clients); give ${part} <= ${whole}`];
}

function evaluate(form, given, assumed = [], strict = true) {
  const known = resolve(form, given);
  const constants = Object.fromEntries(Object.entries(known).map(([name, one]) => [name, one.value]));
  let [terms, prescribed, sides, together] = form.compute(constants), total = sum(terms);
  const conditions = form.conditions.map((condition, i) => {
    const [left, right, admissible] = sides[i];
    return { ...condition, left, right, admissible, holds: holds(left, condition.op, right) };
  });
  let valid = conditions.every(c => c.holds);
  const lost = valid && (Number.isNaN(total) || total === -Infinity), below = total < 0 && !form.signed;
  valid = valid && !lost;
  if (below && !valid) { // beyond its conditions a form divides by what is no longer positive: it then says nothing
    terms = terms.map(() => Infinity);
    total = Infinity;
  }
  for (const c of conditions) {
    if (strict && c.legal && !c.holds) {
      throw Error(`${c.why}: ${c.text} fails, ${number(c.left, 9)} against ${number(c.right, 9)}`);
    }
  }
  const why_not = [...excessParticipants(form, known, conditions), ...impossible(form, together, known)];
  if (valid && below) why_not.push("the left-hand side is never negative, so no run has these constants");
  if (valid && total === Infinity) why_not.push("the value is infinite, which bounds nothing");
  if (lost) why_not.push("no value: the numbers overflow");
  why_not.push(...form.caveats);
  const broken = conditions.filter(c => !c.holds);
  if (broken.length) why_not.push(`a condition fails: ${broken.map(c => c.text).join("; ")}`);
  form.prescribes.forEach((name, i) => {
    if (name in known && known[name].source !== "derived" && !close(known[name].value, prescribed[i])) {
      why_not.push(`${name} = ${number(known[name].value, 12)} is given, and the result prescribes `
        + `${number(prescribed[i], 12)}: it says nothing of other values`);
    }
  });
  const open = form.assumptions.map(a => a.name).filter(name => !assumed.includes(name) && !assumed.includes("all"));
  if (open.length) why_not.push(`assumptions neither checked nor assumed: ${open.join(", ")}`);
  const sizes = terms.map(Math.abs), endless = sizes.filter(size => size === Infinity).length, whole = sum(sizes);
  const shares = sizes.map(size => endless === 1 ? Number(size === Infinity) : size / whole);
  const clear = (terms.every(Number.isFinite) || endless === 1) && terms.some(term => term !== 0);
  const ranked = terms.map(term => Number.isNaN(term) ? -Infinity : term);
  return {
    value: total, terms, shares, dominant: clear ? form.terms[ranked.indexOf(Math.max(...ranked))].name : "",
    conditions, valid, guarantee: why_not.length === 0, why_not, known,
    prescribed: Object.fromEntries(form.prescribes.map((name, i) => [name, prescribed[i]])),
  };
}

// --- The same elsewhere ----------------------------------------------------------------------------------------------

function commands(form, given, assumed) {
  const all = form.assumptions.length > 0 && form.assumptions.every(a => assumed.includes(a.name));
  const taken = all ? ["all"] : assumed;
  const settings = Object.entries(given).map(([name, value]) => `${name}=${typed(value)}`);
  const python = value => Array.isArray(value) ? `[${value.map(python).join(", ")}]`
    : Number.isFinite(value) ? String(value) : `float("${number(value)}")`;
  const table = Object.entries(given).map(([name, value]) => `"${name}": ${python(value)}`).join(", ");
  const words = taken.length ? `, assume=[${taken.map(name => `"${name}"`).join(", ")}]` : "";
  return {
    shell: `fedbounds eval ${form.result.key} --form '${form.name}' --set ${settings.join(" ")}`
      + taken.map(name => ` --assume ${name}`).join(""),
    python: `import fedbounds\n\nevaluation = fedbounds.evaluate("${form.result.key}", {${table}}, form="${form.name}"${words})\n`
      + "print(evaluation)",
    latex: form.latex,
  };
}

// Whether two forms bound comparable left-hand sides, and what to keep in mind; a measure lists those it is at most.
function comparable(first, second, measures) {
  const [a, b] = [measures[first.measure], measures[second.measure]];
  const [less, more] = [a.at_most.includes(second.measure), b.at_most.includes(first.measure)];
  const words = { over: "over ", expectation: "expectation over ", given: "expectation over " };
  const conditional = one => `${one.expectation || "nothing"} ${one.given ? `given ${one.given}` : "(no condition)"}`;
  const say = (one, key) => (words[key] ?? "") + (key === "given" ? conditional(one) : one[key] || "nothing");
  const differs = ["aggregate", "over", "of", "expectation", "given"]
    .filter(key => a[key] !== b[key] && !(key === "expectation" && a.given !== b.given))  // with its condition
    .map(key => `${say(a, key)} against ${say(b, key)}`).join("; ");
  if (!less && !more) return { ok: false, why: `they bound different things: ${differs}` };
  if (less && more) return { ok: true, why: "" };
  return { ok: true, why: `the ${less ? "second" : "first"} bounds more than the other does (${differs}), so a larger `
    + "value of it is no defeat" };
}
