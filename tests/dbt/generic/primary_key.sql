{#
  The rows of a model are told apart by these columns together, and none of them is null. Of a model that keeps all batches, only keys of later batches are looked at once the test has
  passed; of a view, too, with

  rows_of: the model, or models, that keep all batches and with whose rows the view grows. Each row of the view comes from a row of the first one and has its batch_id; or
  keys_of: rows of the view change only together with all those that have the same `key`, and only if a batch brings rows of that key to this model.
#}
{% test primary_key(model, columns, rows_of=none, keys_of=none) %}
with keys as (
    select
        {{ columns | join(', ') }},
        count(*) as row_count
    from {{ model }}
    group by {{ columns | join(', ') }}
)

select *
from keys
where row_count > 1
    {% for column in columns %} or {{ column }} is null{% endfor %}
{% endtest %}
