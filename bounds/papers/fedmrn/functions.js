// The JavaScript of reach.py.
function MaskReach(shift, steps, iterations) {
  const rounds = Math.ceil((iterations - 1) / steps), first = shift / steps, x = first + 20, y = x + rounds;
  let ahead = 0, series = 0;
  for (let j = 0; j < 20; j++) ahead += rounds / ((first + j) * (first + j + rounds));
  for (const [c, k] of [[1 / 12, 2], [-1 / 120, 4], [1 / 252, 6], [-1 / 240, 8]]) {
    series += c * (Math.pow(x, -k) - Math.pow(y, -k));
  }
  return 2 * (ahead + Math.log1p(rounds / x) + rounds / (2 * x * y) + series);
}
