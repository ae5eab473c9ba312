-- Customers.
CREATE TABLE IF NOT EXISTS customers (
  id integer PRIMARY KEY,
  name text
);

create or replace function total(a int) returns int as $$
  select 1;
$$ language sql;

CREATE UNIQUE INDEX by_name ON customers(name);
ALTER TABLE customers ADD COLUMN x int;
SELECT * FROM customers;
