// Plots with logarithmic axes, side by side, as SVG.
//
// In: panels, each with the names of its axes and lines of points. Out: the picture as text, readable on a light and on
// a dark page. A panel may ask for a dotted line from the start of its first line, which shows proportional growth. A
// line that is steeper is a cliff.

const WIDTH = 340;
const HEIGHT = 320;
const LEFT = 58;
const RIGHT = 22;
const BOTTOM = 46;
const LEGEND_LINE = 16;
const GREY = '#808080';
/** Colours with equal contrast to white and to black. */
const COLOURS = ['#3b82d6', '#d1495b', '#2e933c', '#b07d10', '#8f5fc0'];

export function picture(wanted) {
  // A logarithmic axis has no place for zero and negative numbers.
  const above = ({ label, points }) => ({ label, points: points.filter((point) => Math.min(...point) > 0) });
  const panels = wanted
    .map((panel) => ({ ...panel, lines: panel.lines.map(above).filter(({ points }) => points.length > 0) }))
    .filter(({ lines }) => lines.length > 0);
  const top = 12 + LEGEND_LINE * Math.max(...panels.map(({ lines }) => lines.length));
  const place = (i) => `translate(${i * WIDTH} 0)`;
  const parts = panels.map((panel, i) => `<g transform="${place(i)}">\n${draw(panel, top)}\n</g>`);
  const size = `viewBox="0 0 ${panels.length * WIDTH} ${HEIGHT}"`;
  const font = `font-family="sans-serif" font-size="12" fill="${GREY}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font}>\n${parts.join('\n')}\n</svg>\n`;
}

function draw({ x, y, proportional, lines }, top) {
  const points = lines.flatMap((line) => line.points);
  const across = scale(points.map(([at]) => at), LEFT, WIDTH - RIGHT);
  const up = scale(points.map(([, value]) => value), HEIGHT - BOTTOM, top);
  const [low, middle] = [HEIGHT - BOTTOM, (top + HEIGHT - BOTTOM) / 2];
  return [
    ...across.ticks.flatMap((tick) => [
      `<path d="M${across(tick)} ${top}V${low}" stroke="${GREY}" stroke-opacity=".3"/>`,
      `<text x="${across(tick)}" y="${low + 16}" text-anchor="middle">${short(tick)}</text>`,
    ]),
    ...up.ticks.flatMap((tick) => [
      `<path d="M${LEFT} ${up(tick)}H${WIDTH - RIGHT}" stroke="${GREY}" stroke-opacity=".3"/>`,
      `<text x="${LEFT - 6}" y="${up(tick) + 4}" text-anchor="end">${short(tick)}</text>`,
    ]),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${x}</text>`,
    `<text transform="translate(13 ${middle}) rotate(-90)" text-anchor="middle">${y}</text>`,
    ...(proportional ? [proportion(lines[0].points, across, up)] : []),
    ...lines.map((line, i) => curve(line, COLOURS[i], across, up)),
    ...lines.map(({ label }, i) => legend(label, COLOURS[i], 14 + i * LEGEND_LINE)),
  ].join('\n');
}

/** Maps a value to its place; `ticks` are the powers of ten around all values. */
function scale(values, from, to) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const place = (value) => {
    const share = (Math.log10(value) - low) / (high - low);
    return Math.round((from + share * (to - from)) * 10) / 10;
  };
  place.ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return place;
}

function curve({ points }, colour, across, up) {
  const places = points.map(([at, value]) => [across(at), up(value)]);
  const dots = places.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`).join('');
  return `<polyline points="${places.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}`;
}

function legend(label, colour, y) {
  const dot = `<circle cx="${LEFT + 4}" cy="${y - 4}" r="4" fill="${colour}"/>`;
  return `${dot}<text x="${LEFT + 14}" y="${y}">${label}</text>`;
}

function proportion(points, across, up) {
  const [[first, value]] = points;
  const end = Math.min(points.at(-1)[0], (first * up.ticks.at(-1)) / value);
  const way = `M${across(first)} ${up(value)}L${across(end)} ${up((value * end) / first)}`;
  return `<path d="${way}" stroke="${GREY}" stroke-dasharray="2 4"/>`;
}

function short(value) {
  if (value >= 1e6) return `${value / 1e6}M`;
  return value >= 1e3 ? `${value / 1e3}k` : String(Math.round(value * 1e6) / 1e6);
}
