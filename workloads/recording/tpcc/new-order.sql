-- New-Order, clause 2.4: five to fifteen lines; one order in a hundred names an item that does not exist.
\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\set lines random(5, 15)
\set is_invalid random(1, 100) = 1
\set seed random(0, 1000000000) / 1000000000.0
BEGIN;
SELECT new_order(:w_id, :d_id, :c_id, :lines, :is_invalid, :warehouses, :seed) AS is_done \gset
\if :is_done
COMMIT;
\else
ROLLBACK;
\endif
