// Gives the sums of the cities in another currency. A server knows the rate, for those who have the key. It is kept.
const { round } = require('money');

let rate = await state.get(`rate:${args.to}`);
if (rate === null) {
  const headers = { authorization: `Bearer ${secrets.RATES_KEY}` };
  const answer = await fetch(`${args.server}/rates?to=${args.to}`, { headers });
  if (!answer.ok) throw new Error(`there is no rate: ${answer.status}`);
  ({ rate } = await answer.json());
  await state.set(`rate:${args.to}`, rate);
}
const { rows } = await db.sql('SELECT city, sum(euros) FROM orders GROUP BY city ORDER BY city');
return Object.fromEntries(rows.map(([city, euros]: [string, number]) => [city, round(euros * rate)]));
