package dev.nereid.grpc;

import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import org.junit.jupiter.api.Test;

/** Tests what a program sees whose framework manages other versions of libraries. */
final class OtherLibrariesTest {
    @Test
    void failTheStartWithOneSentence() {
        NoSuchFieldError missing = new NoSuchFieldError("RECVBUF_ALLOCATOR");
        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                MultiThreadIoEventLoopGroup older = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory()) {
                    @Override
                    public IoEventLoop next() {
                        throw missing;
                    }
                }) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> GrpcFrontend.start(
                            new FakeInferenceServer(memory),
                            GrpcOptions.of(grpc -> grpc.port = 0),
                            new EventLoopGroups(older, older, NioServerSocketChannel::new, Runnable::run)))
                    .withMessage(
                            "gRPC front end: Netty and gRPC of other versions (expected: Netty 4.2 and gRPC 1.81, or"
                                    + " later; import netty-bom and nereid-bom before other BOMs): " + missing)
                    .withCause(missing);
        }
    }
}
