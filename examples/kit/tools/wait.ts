// Asks until the parcel is there. The tool goes on after its last line, because it names `resolve`.
let asked = 0;
async function ask() {
  asked += 1;
  const { parcel } = await (await fetch(`${args.server}/parcel`)).json();
  if (parcel === 'arrived') resolve({ parcel, asked });
  else setTimeout(ask, 10);
}
setTimeout(ask, 0);
