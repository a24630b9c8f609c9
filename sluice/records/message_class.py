"""The class of a protobuf message that is declared at run time."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def message_class(file: descriptor_pb2.FileDescriptorProto, name: str) -> Any:
    """Returns the class of a message of a file, in a pool that nothing else is in."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName(f"{file.package}.{name}")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    # Before protobuf 4.22, so with TFX 1.16.
    return message_factory.MessageFactory(pool).GetPrototype(found)
