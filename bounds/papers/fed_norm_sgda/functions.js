// The JavaScript of composites.py, and of the floors in notation.py.
const of = (values, entry) => sum(values.map(entry));
const momentum_buffer = (tau, rho) => tau.map(t => t === 1 ? 1 : (1 - Math.pow(rho, t)) / (1 - rho));
const momentum_sum = (tau, rho) =>
  momentum_buffer(tau, rho).map((buffer, i) => tau[i] === 1 ? 1 : (tau[i] - rho * buffer) / (1 - rho));
const momentum_squares = (tau, rho) => momentum_buffer(tau, rho).map((buffer, i) => {
  const whole = tau[i] - 2 * rho * buffer + rho * rho * (1 - Math.pow(rho, 2 * tau[i])) / (1 - rho * rho);
  return tau[i] === 1 ? 1 : whole / Math.pow(1 - rho, 2);
});
function effective_steps(p, w, a1) {
  const mean = of(p, (one, i) => one * a1[i]);
  return w.every((one, i) => close(one * mean, p[i] * a1[i])) ? mean : of(w, (one, i) => one * a1[i]);
}
const weight_mismatch = (p, w) => of(p, (one, i) => one === w[i] ? 0 : Math.pow(one - w[i], 2) / w[i]);
const least_noise_of_the_mean = (t, w, tau) => t * w.length * of(w, (one, i) => one * one / tau[i]);
const least_growing_noise = (t, w, tau) => t * w.length * Math.max(...w.map((one, i) => one / tau[i]));
const least_mismatch = (p, E_w) => p.length * of(p, one => one * one) / E_w - 1;

// The JavaScript of coefficients.py.
function CoefficientsMissing(total, squares, last, b, steps) {
  const close = 1e-9, apart = Number(last < b * (1 - close));
  const s = total - last - apart * b, q = squares - last * last - apart * b * b, m = steps - 1 - apart;
  const whole = Math.floor(s / b * (1 + close)), most = whole * b * b + (s - whole * b) ** 2;
  const some = q >= s * s / m - close * squares && q <= most + close * squares && s <= m * b + close * total;
  const none = Math.abs(s) <= close * total && Math.abs(q) <= close * squares;
  return Number(!(last <= b * (1 + close) && s >= -close * total && ((m > 0 && some) || (m >= 0 && none))));
}
