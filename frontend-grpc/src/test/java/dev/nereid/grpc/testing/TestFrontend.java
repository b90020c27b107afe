package dev.nereid.grpc.testing;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.grpc.EventLoopGroups;
import dev.nereid.grpc.GrpcFrontend;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelInferRequest;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** A gRPC front end with a fake server and a client. Checks on closing that no memory is left. */
public final class TestFrontend implements AutoCloseable {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    public final LeakCheckingMemory memory;
    public final FakeInferenceServer server;
    public final EventLoopGroup eventLoops = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    public final ExecutorService workers = Executors.newFixedThreadPool(
            2, Thread.ofPlatform().name("worker/", 0).factory());
    public final GrpcFrontend frontend;
    public final ManagedChannel channel;
    public final GRPCInferenceServiceBlockingStub client;

    public TestFrontend() {
        this(_ -> {});
    }

    public TestFrontend(Consumer<GrpcOptions.Builder> change) {
        this(change, Long.MAX_VALUE);
    }

    public TestFrontend(Consumer<GrpcOptions.Builder> change, long memoryBytes) {
        memory = new LeakCheckingMemory(memoryBytes);
        server = new FakeInferenceServer(memory);
        try {
            frontend = GrpcFrontend.start(
                    server,
                    GrpcOptions.of(grpc -> {
                        grpc.port = 0;
                        change.accept(grpc);
                    }),
                    new EventLoopGroups(eventLoops, eventLoops, NioServerSocketChannel::new, workers));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        channel = NettyChannelBuilder.forAddress("127.0.0.1", frontend.port())
                .usePlaintext()
                .channelType(NioSocketChannel.class)
                .eventLoopGroup(eventLoops)
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build();
        client = GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(TIMEOUT);
    }

    /** Writes a request for INPUT0, raw. */
    public static ModelInferRequest.Builder request(String model, String datatype, ByteString raw, long... shape) {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName(model);
        var input = request.addInputsBuilder().setName("INPUT0").setDatatype(datatype);
        for (long dim : shape) {
            input.addShape(dim);
        }
        return request.addRawInputContents(raw);
    }

    /** Writes numbers as a tensor has them. */
    public static ByteString floats(float... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return ByteString.copyFrom(bytes.flip());
    }

    public static void assertFails(ThrowingCallable call, Status.Code code, String text) {
        org.assertj.core.api.Assertions.assertThatThrownBy(call)
                .isInstanceOfSatisfying(StatusRuntimeException.class, failure -> {
                    assertThat(failure.getStatus().getDescription()).isEqualTo(text);
                    assertThat(failure.getStatus().getCode()).isEqualTo(code);
                });
    }

    /** Waits until another thread has made a condition true. */
    public static void await(BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as("nanoseconds waited").isLessThan(TIMEOUT.toNanos());
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }

    public void awaitNoMemory() {
        await(() -> memory.buffersInUse() == 0);
    }

    @Override
    public void close() {
        channel.shutdownNow();
        frontend.close();
        awaitNoMemory();
        memory.close();
        eventLoops.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
        workers.shutdown();
    }
}
