// The JavaScript of harmonic.py, second_moments.py and weight_error.py.
function HarmonicNumber(m) {
  if (m === 0) return 0;
  const x = m + 10, gamma = 0.5772156649015328606;
  const tail = sum([1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760].map((c, k) => c * Math.pow(x, -2 * (k + 1))));
  return Math.log(x) + gamma + 1 / (2 * x) - tail - sum_clients(10, j => 1 / (m + j + 1));
}

// --- second_moments.py
function least_squares(p, target, V) {
  const total = sum(target.map(one => one * one)), length = Math.sqrt(total), miss = Math.sqrt(V);
  if (miss >= length) return 0;
  const mean = sum(target.map((one, i) => one * one * p[i])) / total, shift = mean * miss / (length - miss);
  return Math.max(0, sum(target.map((one, i) => one * one / (p[i] + shift))) - miss * (length - miss) / mean);
}
const least_second_moment = (p, W) => p.length * least_squares(p, p.map(() => 1 / p.length), W / p.length);
const least_sum = (N, V) => N * N * Math.pow(Math.max(1 / Math.sqrt(N) - Math.sqrt(V), 0), 2);
const least_weighted_sum = (p, varphi, V) => p.length * p.length * least_squares(p, varphi, V);

// --- weight_error.py: sums of E omega_t and of E omega_t^2 over rounds, by one transform and, later, by the integral
const LONGEST = 2 ** 20, SETTLED = 48, ALIASING = 1e-16, NEAR_ZERO = 0.03, SERIES = 12, FIRST_PANEL = 2 ** -6;
const times = ([a, b], [c, d]) => [a * c - b * d, a * d + b * c];
const over = ([a, b], [c, d]) => { const size = c * c + d * d; return [(a * c + b * d) / size, (b * c - a * d) / size]; };
const plus = (...all) => [sum(all.map(z => z[0])), sum(all.map(z => z[1]))];
const by = (s, [a, b]) => [s * a, s * b];
const minus = (u, v) => [u[0] - v[0], u[1] - v[1]];
const ONE = [1, 0];

// A (z d/dz)^2 Li_2(phi) at z, with y = q z and yK = y^K.
function second_moment_series(z, y, yK, K) {
  const left = minus(ONE, z), rest = minus(ONE, y);
  const a = over(minus(ONE, yK), rest);
  const da = over(minus(times(y, a), by(K, yK)), rest);
  const d2a = over(minus(plus(times(y, a), by(2, times(y, da))), by(K * K, yK)), rest);
  const remains = times(left, a), phi = minus(ONE, remains);
  const dphi = minus(times(z, a), times(left, da));
  const d2phi = minus(plus(times(z, a), by(2, times(z, da))), times(left, d2a));
  let slope, curve;
  if (Math.hypot(...phi) < NEAR_ZERO) {
    slope = curve = [0, 0];
    for (let k = SERIES - 1; k >= 0; k--) {
      slope = plus(times(slope, phi), [1 / (k + 1), 0]);
      curve = plus(times(curve, phi), [(k + 1) / (k + 2), 0]);
    }
  } else {
    slope = by(-1, over([Math.log(Math.hypot(...remains)), Math.atan2(remains[1], remains[0])], phi));
    curve = over(minus(over(ONE, remains), slope), phi);
  }
  return times(a, plus(times(times(dphi, dphi), curve), times(slope, d2phi)));
}

// In place: re + i im becomes sum_j (re + i im)_j exp(2 pi i jk/n); n a power of two.
function transform(re, im) {
  const n = re.length;
  for (let i = 1, j = 0; i < n; i++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) [re[i], re[j], im[i], im[j]] = [re[j], re[i], im[j], im[i]];
  }
  const cosine = Float64Array.from({ length: n / 2 }, (_, k) => Math.cos(2 * Math.PI * k / n));
  const sine = Float64Array.from({ length: n / 2 }, (_, k) => Math.sin(2 * Math.PI * k / n));
  for (let half = 1; half < n; half *= 2) {
    for (let start = 0; start < n; start += 2 * half) {
      for (let k = 0; k < half; k++) {
        const turn = k * (n / half / 2), i = start + k, j = i + half;
        const x = re[j] * cosine[turn] - im[j] * sine[turn], y = re[j] * sine[turn] + im[j] * cosine[turn];
        [re[j], im[j], re[i], im[i]] = [re[i] - x, im[i] - y, re[i] + x, im[i] + y];
      }
    }
  }
}

const kept = new Map();
function remembered(key, compute) { // sliders ask for the same again and again
  if (!kept.has(key)) {
    if (kept.size > 256) kept.delete(kept.keys().next().value);
    kept.set(key, compute());
  }
  return kept.get(key);
}

// The sums over t < 1, ..., t < rounds; rounds is a power of two.
const sums = (p, K, rounds) => remembered(`${p} ${K} ${rounds}`, () => {
  const q = 1 - p, n = 8 * rounds, radius = Math.pow(ALIASING, 1 / n), cut = Math.min(K, rounds);
  const re = new Float64Array(n), im = new Float64Array(n);
  for (let j = 0; p < 1 && j <= n / 2; j++) {
    const at = (turns, size) => [size * Math.cos(2 * Math.PI * turns / n), -size * Math.sin(2 * Math.PI * turns / n)];
    const z = at(j, radius), yK = at((j * cut) % n, Math.pow(q * radius, cut));
    [re[j], im[j]] = second_moment_series(z, by(q, z), yK, cut);
    if (j > 0) [re[n - j], im[n - j]] = [re[j], -im[j]];
  }
  if (p < 1) transform(re, im);
  const mean = new Float64Array(rounds), square = new Float64Array(rounds);
  for (let t = 0, first = 0, second = 0; t < rounds; t++) {
    const survival = Math.pow(q, Math.min(t, cut));
    first += t === 0 ? 1 : (1 - survival) / p - (t < cut ? (t - 1) * survival : 0);
    second += p === 1 ? 1 : re[t] / n * Math.pow(radius, -t) + (t < cut ? Math.pow(q, t) : 0);
    [mean[t], square[t]] = [first, second];
  }
  return [mean, square];
});

// Nodes and weights of Gauss and Legendre on [-1, 1].
const GAUSS = each(12, k => {
  let x = Math.cos(Math.PI * (k + 0.75) / 12.5), slope = 1;
  for (let turn = 0; turn < 20; turn++) {
    let [before, now] = [1, x];
    for (let m = 2; m <= 12; m++) [before, now] = [now, ((2 * m - 1) * x * now - (m - 1) * before) / m];
    slope = 12 * (x * now - before) / (x * x - 1);
    x -= now / slope;
  }
  return [x, 2 / ((1 - x * x) * slope * slope)];
});

// The sums over start <= t < T.
function later(p, K, start, T) {
  const q = 1 - p, mean = (1 - Math.pow(q, K)) / p, more = T - start;
  if (p === 1 || K === 1) return [mean * more, mean * mean * more];
  const ends = [0], cut = Math.min(K, 4 * LONGEST);
  for (let end = FIRST_PANEL / T; end < 0.9 * p; end *= 2) ends.push(end);
  ends.push(0.9 * p);
  let integral = 0;
  for (let panel = 1; panel < ends.length; panel++) {
    const width = ends[panel] - ends[panel - 1];
    for (const [node, weight] of GAUSS) {
      const v = ends[panel - 1] + width * (node + 1) / 2, y = q * (1 + v), yK = Math.pow(y, cut), log = Math.log1p(v);
      const a = (1 - yK) / (1 - y), da = (y * a - cut * yK) / (1 - y);
      const d2a = (y * a + 2 * y * da - cut * cut * yK) / (1 - y);
      const phi = 1 + v * a, dphi = (1 + v) * a + v * da, d2phi = (1 + v) * (a + 2 * da) + v * d2a;
      const curve = a * (d2phi / phi - Math.pow(dphi / phi, 2));
      integral += curve * width * weight / 2 * Math.exp(-start * log) * -Math.expm1(-more * log) / v;
    }
  }
  return [mean * more, mean * mean * more + integral];
}

// The means over the rounds of E omega_t and of E omega_t^2 of one client.
function averages(p, K, T) {
  const settled = p < 1 ? Math.pow(2, Math.ceil(Math.log2(SETTLED / p))) : 1, table = Math.min(settled, LONGEST);
  if (T > LONGEST && settled > LONGEST) throw Error(`p = ${number(p)} is too small for so many rounds: give the weight error`);
  const longest = Math.min(Math.pow(2, Math.ceil(Math.log2(T))), table), cut = Math.min(K, T, table);
  let [mean, square] = sums(p, cut, longest).map(all => all[Math.min(T, longest) - 1]);
  if (T > longest) {
    const more = later(p, cut, longest, T);
    [mean, square] = [mean + more[0], square + more[1]];
  }
  return [mean / T, square / T];
}

const mean_of = values => sum(values) / values.length;
const weight_error = (p, K, T) => mean_of(p.map(rate => {
  const [mean, square] = averages(rate, K, T);
  return Math.max(rate * rate * square - 2 * rate * mean + 1, 0);
}));
const mean_weight_moment = (p, K, T) => mean_of(p.map(rate => rate * averages(rate, K, T)[1]));
const largest_weight = (K, T) => Math.min(K, Math.max(T - 1, 1));
const largest_weight_moment = (p, K, T) => mean_of(p.map(rate => rate * Math.pow(rate < 1 ? largest_weight(K, T) : 1, 2)));
const largest_weight_error = (p, K, T) => mean_of(p.map(rate =>
  rate < 1 ? Math.max(Math.pow(1 - rate, 2), Math.pow(rate * largest_weight(K, T) - 1, 2)) : 0));
