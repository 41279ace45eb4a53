"""The Kafka sink: messages to the partitions they were assigned to, acknowledged before a checkpoint moves."""
