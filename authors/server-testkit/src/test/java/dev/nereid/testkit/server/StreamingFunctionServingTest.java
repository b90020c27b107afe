package dev.nereid.testkit.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.function.BackendFunction;
import dev.nereid.spi.function.Input;
import dev.nereid.spi.function.Output;
import dev.nereid.spi.function.StreamingFunction;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Serves a streaming function that is opened for each model, in the server in memory. */
final class StreamingFunctionServingTest {
    /** Sends the first N words of the model's file words.txt, one in each response. */
    @BackendFunction(name = "words")
    @Input(name = "N", type = DataType.INT32, dims = 1)
    @Output(name = "WORD", type = DataType.BYTES, dims = 1)
    private static final class Words implements StreamingFunction {
        private static final AtomicInteger OPEN = new AtomicInteger();

        private List<String> words = List.of();

        @Override
        public StreamingFunction open(ModelContext model) {
            Words opened = new Words();
            try {
                opened.words = Files.readAllLines(model.versionDirectory().resolve("words.txt"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            OPEN.incrementAndGet();
            return opened;
        }

        @Override
        public void apply(InferenceRequest request, ResponseSender sender) {
            int count = request.requireInput("N").ints()[0];
            for (int i = 0; i < count && !sender.isCancelled(); i++) {
                if (i == words.size()) {
                    throw new IllegalArgumentException("no more words");
                }
                InferenceResponse response = sender.newResponse();
                response.putStrings("WORD", Shape.of(1), List.of(words.get(i)));
                sender.send(response);
            }
        }

        @Override
        public void close() {
            OPEN.decrementAndGet();
        }
    }

    /** Sends responses until the request is cancelled. */
    @BackendFunction(name = "endless")
    @Input(name = "N", type = DataType.INT32, dims = 1)
    @Output(name = "I", type = DataType.INT32, dims = 1)
    private static final class Endless implements StreamingFunction {
        private final CountDownLatch ended = new CountDownLatch(1);

        @Override
        public void apply(InferenceRequest request, ResponseSender sender) {
            while (!sender.isCancelled()) {
                if (sender.isReady()) {
                    InferenceResponse response = sender.newResponse();
                    response.putInts("I", Shape.of(1), 1);
                    sender.send(response);
                }
            }
            ended.countDown();
        }
    }

    @TempDir
    private Path directory;

    private static ModelRequest words(LocalServer server, int count) {
        return server.client().request("m").input("N", Shape.of(1), count);
    }

    @Test
    void sendsEachResponseAndIsClosedWithItsModel() throws IOException {
        Path file = Files.writeString(directory.resolve("words.txt"), "one\ntwo\nthree\n");
        try (LocalServer server = LocalServer.with(new Words())
                .model("m")
                .file("m", "1/words.txt", file)
                .start()) {
            assertThat(Words.OPEN).hasValue(1);
            assertThat(server.server().models().metadata(ModelRef.latest("m")).decoupled())
                    .isTrue();
            assertThat(server.send(words(server, 2)).all())
                    .extracting(
                            response -> response.requireOutput("WORD").strings().getFirst())
                    .containsExactly("one", "two");
            assertThat(server.send(words(server, 0)).all()).isEmpty();
        }
        assertThat(Words.OPEN).hasValue(0);
    }

    @Test
    void failsAfterTheResponsesThatWereSent() throws IOException {
        Path file = Files.writeString(directory.resolve("words.txt"), "one\n");
        try (LocalServer server = LocalServer.with(new Words())
                .model("m")
                .file("m", "1/words.txt", file)
                .start()) {
            ReceivedResponses request = server.send(words(server, 2));

            assertThat(request.error().code()).isEqualTo(ErrorCode.INTERNAL);
            assertThat(request.error())
                    .hasMessageContaining("backend 'words' failed")
                    .hasMessageContaining("no more words");
            assertThat(request.await(1)).hasSize(1);
        }
    }

    @Test
    void isNotLoadedWithoutItsFile() {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> LocalServer.with(new Words()).model("m").start())
                .withMessageContaining("words.txt");
    }

    @Test
    void seesThatItsClientIsGone() throws InterruptedException {
        Endless endless = new Endless();
        try (LocalServer server = LocalServer.with(endless).model("m").start()) {
            ModelRequest request = words(server, 1);
            ReceivedResponses received = server.send(request);
            assertThat(received.await(1)).hasSizeGreaterThanOrEqualTo(1);

            request.cancel();
            endless.ended.await();
            assertThat(received.error().code()).isEqualTo(ErrorCode.CANCELLED);
        }
    }
}
