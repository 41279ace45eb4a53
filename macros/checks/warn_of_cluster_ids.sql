{# Post-hook of cluster_ids: say which upstreams are not the clusters that their logs come from. #}
{% macro warn_of_cluster_ids() %}
  {%- if tidemark.is_running() -%}
    {%- set meant = {
      'other_cluster': 'is not that id',
      'several_clusters': 'has logs of other clusters too',
      'several_upstreams': 'is not the only one with logs of this cluster'
    } -%}
    {%- for row in run_query('select upstream_id, cluster_id, problem from ' ~ this ~ ' where problem is not null order by 1, 2') -%}
      {% do exceptions.warn(
        "upstream_id '" ~ row[0] ~ "' of event_logs " ~ meant[row[2]] ~ ': its logs carry the cluster id ' ~ row[1]
        ~ '. One upstream_id is one cluster, or rows of two clusters are taken for those of one: give each log the id of its cluster'
      ) %}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}
