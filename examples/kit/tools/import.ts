// Puts orders from a CSV file into the database.
const orders = parseCSV(args.csv, { header: true });
await db.sql('CREATE TABLE IF NOT EXISTS orders (city TEXT, euros REAL)');
await db.batch(orders.map(({ city, euros }) => ['INSERT INTO orders VALUES (?, ?)', [city, Number(euros)]]));
return orders.length;
