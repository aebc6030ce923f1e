// A library of the model's own, which later tools require.
exports.round = (amount: number) => Math.round(amount * 100) / 100;
