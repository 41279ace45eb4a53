{#
  The rows of a model are told apart by these columns together, and none of them is null.

  rows_of: of a view, the model that keeps all batches from which each of its rows comes, with its batch_id. Once the test has passed, it looks only at keys of later batches, as it does for
  such a model itself.
#}
{% test primary_key(model, columns, rows_of=none) %}
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
