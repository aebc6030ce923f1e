// A plot with logarithmic axes, as SVG.
//
// In: names of the axes, and lines of points. Out: the text of the picture, readable on a light and on a
// dark page, with a dotted line for growth in proportion from where the first line begins.

const WIDTH = 640;
const HEIGHT = 400;
const LEFT = 70;
const RIGHT = 20;
const TOP = 20;
const BOTTOM = 50;
const COLOURS = ['#2a6fdb', '#d1495b', '#2e933c', '#b08000', '#7b4fa3'];
const LEGEND_LINE = 16;

export function plot({ x, y, lines }) {
  const points = lines.flatMap((line) => line.points).filter(([at, value]) => at > 0 && value > 0);
  const across = scale(points.map(([at]) => at), LEFT, WIDTH - RIGHT);
  const up = scale(points.map(([, value]) => value), HEIGHT - BOTTOM, TOP);
  const parts = [
    ...across.ticks.map((tick) => `<path d="M${across(tick)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#8884"/><text x="${across(tick)}" y="${HEIGHT - BOTTOM + 16}" text-anchor="middle">${short(tick)}</text>`),
    ...up.ticks.map((tick) => `<path d="M${LEFT} ${up(tick)}H${WIDTH - RIGHT}" stroke="#8884"/><text x="${LEFT - 6}" y="${up(tick) + 4}" text-anchor="end">${short(tick)}</text>`),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${x}</text>`,
    `<text transform="translate(14 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">${y}</text>`,
    proportion(lines[0].points, across, up),
    ...lines.map((line, i) => curve(line, COLOURS[i % COLOURS.length], across, up)),
    ...lines.map(({ label }, i) => `<text x="${LEFT + 10}" y="${TOP + 16 + i * LEGEND_LINE}" fill="${COLOURS[i % COLOURS.length]}">${label}</text>`),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#888">\n${parts.join('\n')}\n</svg>\n`;
}

/** From a value to its place; `ticks` are the powers of ten around all values. */
function scale(values, from, to) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const place = (value) => Math.round((from + ((Math.log10(value) - low) / (high - low)) * (to - from)) * 10) / 10;
  place.ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return place;
}

function curve({ points }, colour, across, up) {
  const places = points.map(([at, value]) => [across(at), up(value)]);
  const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`).join('');
  return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}`;
}

function proportion(points, across, up) {
  const [[first, value]] = points;
  const end = Math.min(points.at(-1)[0], (first * up.ticks.at(-1)) / value);
  return `<path d="M${across(first)} ${up(value)}L${across(end)} ${up((value * end) / first)}" stroke="#888" stroke-dasharray="2 4"/>`;
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e3 ? `${value / 1e3}k` : String(Math.round(value * 1e6) / 1e6);
}
