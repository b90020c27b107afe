package dev.nereid.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How the writing of a long response ends. The text is handed over when all is written, which is where it may fail. */
final class LongTextTest {
    private final Response response = new Response();

    @AfterEach
    void theResponseIsClosedOnce() {
        assertThat(response.closings).isEqualTo(1);
    }

    @Test
    void writesAnEvent() {
        LongText text = new LongText(response, () -> false, true);

        text.run();

        assertThat(text.error()).isEmpty();
        assertThat(text.text().size()).isEqualTo("data: {\"model_name\":\"m\",\"model_version\":\"1\"}\n\n".length());
    }

    @Test
    void tellsThatThereIsNoMemoryForTheText() {
        assertThat(failing(new OutOfMemoryError("Java heap space"))).satisfies(error -> {
            assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(error.publicMessage()).isEqualTo("not enough memory to write the response as JSON");
        });
    }

    @Test
    void tellsOfWhatMustNotHappenAsAnInternalError() {
        for (Error unexpected : List.of(new StackOverflowError(), new NoClassDefFoundError("JsonWriter"))) {
            response.closings = 0;
            assertThat(failing(unexpected)).satisfies(error -> {
                assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
                assertThat(error.publicMessage()).isEqualTo("internal error");
            });
        }
    }

    @Test
    void stopsWhenNobodyWantsTheText() {
        LongText text = new LongText(response, () -> true, false);

        text.run();

        assertThat(text.error()).get().isNotInstanceOf(CancellationException.class);
        assertThat(text.text().size()).isZero();
    }

    @Test
    void isNotWholeBeforeItIsWritten() {
        LongText text = new LongText(response, () -> false, false);

        assertThat(text.error()).isPresent();
        text.run();
        assertThat(text.error()).isEmpty();
    }

    private InferenceException failing(Error error) {
        LongText text = new LongText(
                response,
                () -> {
                    throw error;
                },
                false);
        text.run();
        return text.error().orElseThrow();
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
        public boolean isLast() {
            return true;
        }

        @Override
        public void close() {
            closings++;
        }
    }
}
