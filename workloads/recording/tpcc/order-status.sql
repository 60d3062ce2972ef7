-- Order-Status, clause 2.6: the last order of a customer, 60 % of whom are found by their last name.
\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
BEGIN;
\if random(1, 100) <= 60
\set number ((random(0, 255) | random(0, 999)) + 173) % 1000
SELECT c_id FROM (
    SELECT c_id, row_number() OVER (ORDER BY c_first) AS place, count(*) OVER () AS found FROM customer
    WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_last = last_name(:number)) AS named
    WHERE place = (found + 1) / 2 \gset
\else
\set c_id ((random(0, 1023) | random(1, 3000)) + 259) % 3000 + 1
\endif
SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = :w_id AND c_d_id = :d_id AND c_id = :c_id;
SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = :w_id AND o_d_id = :d_id AND o_c_id = :c_id
    ORDER BY o_id DESC LIMIT 1 \gset
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id = :o_id;
COMMIT;
