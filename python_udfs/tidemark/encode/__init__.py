"""Rows -> CSV, canal-json, Avro and schema files. No Spark, no dbt."""

from tidemark.encode.errors import EncodeError
from tidemark.encode.protocol import EncodedFile, Encoder, Message, Messages, encoder_for

__all__ = ["EncodeError", "EncodedFile", "Encoder", "Message", "Messages", "encoder_for"]
