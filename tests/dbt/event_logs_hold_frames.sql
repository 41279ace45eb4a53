-- one row per event log in which the run found nothing to read: the sentence that it began with
-- depends_on: {{ ref('log_segments') }} (whose run looks at the logs)
{{ config(severity='warn') }}

{% set warnings = [] %}
{% if execute and target.type == 'tidemark' %}
    {% for warning in adapter.remembered('warnings on logs') or [] %}
        {% do warnings.append(tidemark.text_literal(warning)) %}
    {% endfor %}
{% endif %}

select explode(cast(array({{ warnings | join(', ') }}) as array<string>)) as warning
