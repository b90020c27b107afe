package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.Loopback;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceImplBase;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.Server;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;

/** gRPC ceiling: echoes each request on the event loop that read it. Immutable. */
final class GrpcEcho extends GRPCInferenceServiceImplBase {
    /** Serves. */
    static Server start(ClientEventLoops loops) throws IOException {
        return NettyServerBuilder.forAddress(Loopback.at(0))
                .bossEventLoopGroup(loops.acceptors())
                .workerEventLoopGroup(loops.workers())
                .channelFactory(loops.serverChannels())
                .directExecutor()
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .addService(new GrpcEcho())
                .build()
                .start();
    }

    @Override
    public void modelInfer(ModelInferRequest request, StreamObserver<ModelInferResponse> observer) {
        ModelInferResponse.Builder response = ModelInferResponse.newBuilder()
                .setModelName(request.getModelName())
                .setModelVersion("1");
        request.getInputsList()
                .forEach(input -> response.addOutputsBuilder()
                        .setName("OUTPUT0")
                        .setDatatype(input.getDatatype())
                        .addAllShape(input.getShapeList()));
        observer.onNext(response.addAllRawOutputContents(request.getRawInputContentsList())
                .build());
        observer.onCompleted();
    }
}
