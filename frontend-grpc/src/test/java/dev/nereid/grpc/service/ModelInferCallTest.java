package dev.nereid.grpc.service;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.grpc.connection.LargeMessage;
import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.testing.RecordedCauses;
import dev.nereid.grpc.testing.RecordedServerCall;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.grpc.testing.TestMessages;
import dev.nereid.grpc.wire.CallContext;
import dev.nereid.grpc.wire.InferMessageReader;
import dev.nereid.grpc.wire.InferRequestAssembler;
import dev.nereid.grpc.wire.ResponseArrays;
import dev.nereid.grpc.wire.ResponseCompressor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import io.grpc.Detachable;
import io.grpc.HasByteBuffer;
import io.grpc.Status;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

final class ModelInferCallTest {
    private final LeakCheckingMemory memory = new LeakCheckingMemory();
    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RecordedServerCall stream = new RecordedServerCall();

    private ModelInferCall call() {
        return call(OptionalLong.empty());
    }

    private ModelInferCall call(OptionalLong deadlineNanos) {
        server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
        InferCallDependencies calls = new InferCallDependencies(
                new InferRequestAssembler(memory, server.sharedMemory(), Integer.MAX_VALUE),
                Optional.empty(),
                ResponseCompressor.NONE,
                new TransportMemory(memory, Long.MAX_VALUE),
                System::nanoTime);
        return new ModelInferCall(
                stream,
                server,
                calls,
                new ResponseArrays(),
                new CallContext(deadlineNanos, ForwardedHeaders.NONE, Optional.empty()));
    }

    @Test
    void failsIfThereIsNoMemoryForTheResponse() {
        ModelInferCall call = call();
        stream.failure = new OutOfMemoryError("Java heap space");
        byte[] request = TestFrontend.request("m", "FP32", TestFrontend.floats(1), 1)
                .build()
                .toByteArray();

        call.onMessage(new Parsed.Ok<>(InferMessageReader.read(TestMessages.cut(request, List.of()))));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(memory.buffersInUse()).isZero();
        memory.close();
        assertNothingFatalLogged();
    }

    @Test
    void reportsTheDeadlineToAClientWhoseClockIsLate() {
        call(OptionalLong.of(System.nanoTime() - 1)).onError(cancelled());
        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
    }

    @Test
    void reportsACancellationBeforeTheDeadline() {
        call(OptionalLong.of(System.nanoTime() + 3_600_000_000_000L)).onError(cancelled());
        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.CANCELLED);
    }

    private static InferenceException cancelled() {
        return new InferenceException(ErrorCode.CANCELLED, "request was cancelled");
    }

    /** The log treats fatal causes as the end of the process. */
    private static void assertNothingFatalLogged() {
        LoggerFactory.getLogger(ModelInferCallTest.class).error("seen", new IllegalStateException("seen"));
        assertThat(RecordedCauses.causes())
                .isNotEmpty()
                .allSatisfy(cause -> assertThat(FatalErrorHandler.find(cause)).isNull());
    }

    /** A message for whose bytes there is no memory. */
    private static final class NoMemory extends InputStream {
        @Override
        public int read() {
            throw new OutOfMemoryError("Java heap space");
        }

        @Override
        public int read(byte[] target, int offset, int length) {
            throw new OutOfMemoryError("Java heap space");
        }
    }

    @Test
    void failsIfThereIsNoMemoryForTheRequest() {
        ModelInferCall call = call();
        var marshaller = InferMarshaller.requests(memory, new TransportMemory(memory, Long.MAX_VALUE));

        call.onMessage(marshaller.parse(new NoMemory()));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(stream.status.getDescription()).contains("no memory to read it");
        assertNothingFatalLogged();
    }

    @Test
    void failsIfAWorkerHasNoMemoryForTheRequest() throws IOException {
        ModelInferCall call = call();
        LargeMessage message = LargeMessage.detachIfLarge(new DetachableBytes(new byte[1]), 0, null);
        assertThat(message).isNotNull();

        call.onMessage(new Parsed.Deferred<>(message, _ -> {
            throw new OutOfMemoryError("Java heap space");
        }));
        call.onHalfClose();

        assertThat(stream.status).isNotNull();
        assertThat(stream.status.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertNothingFatalLogged();
    }

    /** Bytes as the transport has them. */
    private static final class DetachableBytes extends ByteArrayInputStream implements Detachable, HasByteBuffer {
        DetachableBytes(byte[] bytes) {
            super(bytes);
        }

        @Override
        public InputStream detach() {
            return this;
        }

        @Override
        public boolean byteBufferSupported() {
            return false;
        }

        @Override
        public @Nullable ByteBuffer getByteBuffer() {
            return null;
        }
    }
}
