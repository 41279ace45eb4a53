{# The rows of a model are told apart by these columns together, and none of them is null. #}
{% test primary_key(model, columns) %}
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
