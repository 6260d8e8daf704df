"""An ext_proc server for tests of Envoy: fixed answers, and a journal of all that Envoy sent.

Run as a process, so that a test can stop and kill it: `recording_extproc.py unix:PATH OPTIONS_FILE`. The file (JSON)
is read for each stream: journal (file, JSON lines), destination (comma list), source (both, header, metadata), duplex,
prefiller (the address that its header gets, whatever there was), reject (a status), hold (seconds before the answer
to a body).
"""

import asyncio
import contextlib
import itertools
import json
import sys
import time
from pathlib import Path

import grpc
from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as service
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

KEY = "x-gateway-destination-endpoint"
PREFILLER = "x-prefiller-host-port"


class Recorder(service.ExternalProcessorServicer):
    def __init__(self, options_file):
        self.options_file = options_file
        self.numbers = itertools.count(1)

    async def Process(self, requests, _context):  # noqa: N802 - gRPC's name
        stream = Stream(next(self.numbers), json.loads(self.options_file.read_text()))
        async with contextlib.aclosing(stream.run(requests)) as answers:
            async for answer in answers:
                yield answer


class Stream:
    def __init__(self, number, options):
        self.number = number
        self.options = {"source": "both", "duplex": False, "destination": None, "hold": 0.0, **options}
        self.journal = Path(options["journal"])

    def write(self, event, **facts):
        with self.journal.open("a") as file:
            file.write(json.dumps({"stream": self.number, "t": time.monotonic(), "event": event, **facts}) + "\n")

    async def run(self, requests):
        body = bytearray()
        headers = {}
        ended = "cancelled"
        try:
            async for message in requests:
                kind = message.WhichOneof("request")
                facts = self.facts(message, kind)
                self.write(kind, **facts)
                if kind == "request_headers":
                    headers = facts["headers"]
                    body.clear()
                elif kind == "request_body":
                    body += message.request_body.body
                for answer in await self.answers(message, kind, bytes(body)):
                    yield answer
            ended = "eof"
        except BaseException as error:
            ended = type(error).__name__
            raise
        finally:
            self.write("end", how=ended, path=headers.get(":path"))

    def facts(self, message, kind):
        part = getattr(message, kind)
        facts = {
            "attributes": MessageToDict(message.attributes["envoy.filters.http.ext_proc"])
            if "envoy.filters.http.ext_proc" in message.attributes
            else {},
            "metadata": MessageToDict(message.metadata_context).get("filterMetadata", {}),
        }
        if kind.endswith("headers"):
            facts["headers"] = {h.key: h.raw_value.decode() or h.value for h in part.headers.headers}
            facts["eos"] = part.end_of_stream
        elif kind.endswith("body"):
            facts["bytes"] = len(part.body)
            facts["eos"] = part.end_of_stream
        return facts

    async def answers(self, message, kind, body):
        options = self.options
        if kind == "request_headers":
            if message.request_headers.end_of_stream:
                return [self.decision("request_headers")]
            return [] if options["duplex"] else [pb.ProcessingResponse(request_headers=pb.HeadersResponse())]
        if kind == "request_body":
            if not message.request_body.end_of_stream:
                return []
            await asyncio.sleep(options["hold"])
            if "reject" in options:
                return [self.rejection(options["reject"])]
            if options["duplex"]:
                return [self.decision("request_headers"), *self.echo("request_body", body, True)]
            return [self.decision("request_body")]
        if kind == "response_headers":
            return [pb.ProcessingResponse(response_headers=pb.HeadersResponse())]
        if kind == "response_body":
            if options["duplex"]:
                return self.echo("response_body", message.response_body.body, message.response_body.end_of_stream)
            return [pb.ProcessingResponse(response_body=pb.BodyResponse())]
        return [pb.ProcessingResponse(**{kind: pb.TrailersResponse()})]

    def decision(self, phase):
        destination, source = self.options["destination"], self.options["source"]
        common = pb.CommonResponse(clear_route_cache=True)
        metadata = None
        if (prefiller := self.options.get("prefiller")) is not None:
            common.header_mutation.remove_headers.append(PREFILLER)
            header = HeaderValue(key=PREFILLER, raw_value=prefiller.encode())
            common.header_mutation.set_headers.append(HeaderValueOption(header=header))
        if destination and source in ("both", "header"):
            common.header_mutation.set_headers.append(
                HeaderValueOption(header=HeaderValue(key=KEY, raw_value=destination.encode()))
            )
        if destination and source in ("both", "metadata"):
            metadata = Struct()
            metadata.update({"envoy.lb": {KEY: destination}})
        part = pb.HeadersResponse if phase == "request_headers" else pb.BodyResponse
        return pb.ProcessingResponse(**{phase: part(response=common)}, dynamic_metadata=metadata)

    def echo(self, phase, body, end):
        chunks = [body[at : at + 62_000] for at in range(0, len(body), 62_000)] or [b""]
        for number, chunk in enumerate(chunks):
            streamed = pb.StreamedBodyResponse(body=chunk, end_of_stream=end and number == len(chunks) - 1)
            mutation = pb.BodyMutation(streamed_response=streamed)
            yield pb.ProcessingResponse(**{phase: pb.BodyResponse(response=pb.CommonResponse(body_mutation=mutation))})

    def rejection(self, status):
        response = pb.ImmediateResponse(body=b'{"error":{"message":"refused by the picker"}}')
        response.status.code = status
        response.headers.set_headers.append(
            HeaderValueOption(header=HeaderValue(key="content-type", raw_value=b"application/json"))
        )
        response.headers.set_headers.append(
            HeaderValueOption(header=HeaderValue(key="x-lorapick-reason", raw_value=b"shed"))
        )
        return pb.ProcessingResponse(immediate_response=response)


async def main(listen, options_file):
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
    service.add_ExternalProcessorServicer_to_server(Recorder(options_file), server)
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    server.add_insecure_port(listen)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
