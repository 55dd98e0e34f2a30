// The JavaScript of drift.py.
function DriftGrowth(x, steps) {
  if (steps === 1) return 0;
  if (x * steps > 1) {
    const y = Math.expm1(steps * Math.log1p(x)), closed = (y * y - 2 * y - 2 * x * y) / (x * (2 + x)) + steps;
    return Number.isFinite(closed) ? closed : Infinity;
  }
  let weight = steps * (steps - 1) / 2 * x, series = weight * x;
  for (let k = 2; k <= 30; k++) {
    weight *= (steps - k) / (k + 1) * x;
    series += weight * (Math.pow(2 + x, k) - 2);
  }
  return series;
}
