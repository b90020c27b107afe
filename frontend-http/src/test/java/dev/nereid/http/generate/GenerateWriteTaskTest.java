package dev.nereid.http.generate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The end of writing a long response. The last chunk is added when all is written, where adding may fail. */
final class GenerateWriteTaskTest {
    private final Response response = new Response();
    private final JsonMemoryLimiter memory = new JsonMemoryLimiter();

    @AfterEach
    void theResponseIsClosedOnce() {
        assertThat(response.closings).isEqualTo(1);
    }

    @Test
    void writesAnEvent() {
        GenerateWriteTask text = new GenerateWriteTask(response, () -> false, memory, true);

        text.run();

        assertThat(text.error()).isEmpty();
        assertThat(text.chunks().size()).isEqualTo("data: {\"model_name\":\"m\",\"model_version\":\"1\"}\n\n".length());
    }

    @Test
    void reportsThatThereIsNoMemoryForTheText() {
        assertThat(failing(new OutOfMemoryError("Java heap space"))).satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.publicMessage()).isEqualTo("not enough memory to write the response as JSON");
        });
    }

    @Test
    void reportsUnexpectedErrorsAsInternal() {
        for (Error unexpected : List.of(new StackOverflowError(), new NoClassDefFoundError("JsonWriter"))) {
            response.closings = 0;
            assertThat(failing(unexpected)).satisfies(error -> {
                assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
                assertThat(error.publicMessage()).isEqualTo("internal error");
            });
        }
    }

    @Test
    void stopsWhenTheTextIsAbandoned() {
        GenerateWriteTask text = new GenerateWriteTask(response, () -> true, memory, false);

        text.run();

        assertThat(text.error()).get().isNotInstanceOf(CancellationException.class);
        assertThat(text.chunks().size()).isZero();
    }

    @Test
    void releasesTheMemoryOfATruncatedText() {
        JsonMemoryLimiter small = new JsonMemoryLimiter(3L * JsonChunks.CHUNK_SIZE);
        GenerateWriteTask text = new GenerateWriteTask(new LongResponse(response), () -> false, small, false);

        text.run();

        assertThat(text.error()).get().satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.retryAfter()).isPresent();
        });
        assertThat(small.reserved()).isZero();
    }

    @Test
    void reservesTheMemoryOfATextUntilItIsClosed() {
        GenerateWriteTask text = new GenerateWriteTask(new LongResponse(response), () -> false, memory, false);

        text.run();

        assertThat(text.chunks().size()).isGreaterThan(1 << 20);
        assertThat(memory.reserved())
                .isBetween(text.chunks().size() - 1024, text.chunks().size() + (1 << 20));
        text.chunks().close();
        assertThat(memory.reserved()).isZero();
    }

    @Test
    void isIncompleteBeforeItIsWritten() {
        GenerateWriteTask text = new GenerateWriteTask(response, () -> false, memory, false);

        assertThat(text.error()).isPresent();
        text.run();
        assertThat(text.error()).isEmpty();
    }

    private InferenceException failing(Error error) {
        GenerateWriteTask text = new GenerateWriteTask(
                response,
                () -> {
                    throw error;
                },
                memory,
                false);
        text.run();
        return text.error().orElseThrow();
    }

    /** A response with a long identifier. */
    private record LongResponse(Response response) implements InferResponse {
        @Override
        public String model() {
            return response.model();
        }

        @Override
        public long version() {
            return response.version();
        }

        @Override
        public String id() {
            return "é".repeat(1 << 20);
        }

        @Override
        public List<NamedTensor> outputs() {
            return List.of();
        }

        @Override
        public Map<String, ParameterValue> parameters() {
            return Map.of();
        }

        @Override
        public boolean isFinal() {
            return true;
        }

        @Override
        public TensorLease lease(int output) {
            return response.lease(output);
        }

        @Override
        public void close() {
            response.close();
        }
    }

    /** A response without outputs, which counts how often it is closed. */
    private static final class Response implements InferResponse {
        private int closings;

        @Override
        public String model() {
            return "m";
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public String id() {
            return "";
        }

        @Override
        public List<NamedTensor> outputs() {
            return List.of();
        }

        @Override
        public Map<String, ParameterValue> parameters() {
            return Map.of();
        }

        @Override
        public boolean isFinal() {
            return true;
        }

        @Override
        public TensorLease lease(int output) {
            throw new IndexOutOfBoundsException(output);
        }

        @Override
        public void close() {
            closings++;
        }
    }
}
