"""The least that a Python ext_proc picker can do: a baseline for ours, and a stand-in for it in tests.

A grpc.aio server on uvloop with Envoy's own stubs. It reads no body, keeps no state beyond a counter, and names the
endpoints in turn:

    python bench/trivial_extproc.py unix:PATH 127.0.0.1:8001,127.0.0.1:8002 [buffered|full_duplex_streamed]
"""

import asyncio
import itertools
import signal
import sys

import grpc
import uvloop
from envoy.config.core.v3.base_pb2 import HeaderValue, HeaderValueOption
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as service
from google.protobuf.struct_pb2 import Struct
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

KEY = "x-gateway-destination-endpoint"
GO_ON = pb.ProcessingResponse(request_headers=pb.HeadersResponse())
ANSWER_SEEN = pb.ProcessingResponse(response_headers=pb.HeadersResponse())


def decision(phase: str, endpoint: str) -> pb.ProcessingResponse:
    """Name the endpoint, in header and metadata, as the answer to the headers or to the body."""
    metadata = Struct()
    metadata.update({"envoy.lb": {KEY: endpoint}})
    common = pb.CommonResponse(clear_route_cache=True)
    header = HeaderValue(key=KEY, raw_value=endpoint.encode())
    common.header_mutation.set_headers.append(HeaderValueOption(header=header))
    part = pb.HeadersResponse if phase == "request_headers" else pb.BodyResponse
    return pb.ProcessingResponse(**{phase: part(response=common)}, dynamic_metadata=metadata)


def echo(body: bytes) -> list[pb.ProcessingResponse]:
    """Send a whole body back, as FULL_DUPLEX_STREAMED wants it."""
    starts = range(0, max(1, len(body)), 62_000)
    answers = []
    for start in starts:
        streamed = pb.StreamedBodyResponse(body=body[start : start + 62_000], end_of_stream=start == starts[-1])
        mutation = pb.BodyMutation(streamed_response=streamed)
        answers.append(
            pb.ProcessingResponse(request_body=pb.BodyResponse(response=pb.CommonResponse(body_mutation=mutation)))
        )
    return answers


class TrivialPicker(service.ExternalProcessorServicer):
    """Round-robin."""

    def __init__(self, endpoints: list[str], *, duplex: bool) -> None:
        self._at_headers = itertools.cycle([decision("request_headers", endpoint) for endpoint in endpoints])
        self._at_body = itertools.cycle([decision("request_body", endpoint) for endpoint in endpoints])
        self._duplex = duplex

    async def Process(self, requests, _context):  # noqa: N802 - gRPC's name
        body = bytearray()
        async for message in requests:
            kind = message.WhichOneof("request")
            if kind == "request_headers":
                if message.request_headers.end_of_stream:
                    yield next(self._at_headers)
                elif not self._duplex:
                    yield GO_ON
            elif kind == "request_body":
                body += message.request_body.body
                if not message.request_body.end_of_stream:
                    continue
                if not self._duplex:
                    yield next(self._at_body)
                    continue
                yield next(self._at_headers)
                for answer in echo(bytes(body)):
                    yield answer
            elif kind == "response_headers":
                yield ANSWER_SEEN
            elif kind == "response_trailers":
                yield pb.ProcessingResponse(response_trailers=pb.TrailersResponse())


async def serve(listen: str, endpoints: list[str], *, duplex: bool) -> None:
    """Serve until SIGTERM."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
    service.add_ExternalProcessorServicer_to_server(TrivialPicker(endpoints, duplex=duplex), server)
    checks = health.aio.HealthServicer()
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    server.add_insecure_port(listen)
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(grace=0.2)


def main() -> None:
    listen, endpoints, *mode = sys.argv[1:]
    uvloop.run(serve(listen, endpoints.split(","), duplex=mode == ["full_duplex_streamed"]))


if __name__ == "__main__":
    main()
