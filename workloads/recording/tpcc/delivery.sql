-- Delivery, clause 2.7: the ten districts of a warehouse in one transaction.
\set w_id :client_id % :warehouses + 1
\set carrier random(1, 10)
SELECT deliver(:w_id, :carrier);
