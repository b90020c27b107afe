package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Tests the counters of refused requests and the codes of client errors. */
class RefusalsTest {
    private final InferenceException clientError = InferenceException.clientError("text");

    @Test
    void countsByProtocolAndCause() {
        Refusals refusals = Refusals.counting(false);

        refusals.refuse(RequestProtocol.HTTP, clientError);
        refusals.refuse(RequestProtocol.HTTP, InferenceException.tooLarge("text"));
        refusals.refuse(RequestProtocol.GRPC, InferenceException.overloaded("text", Duration.ofSeconds(1)));
        refusals.refuse(RequestProtocol.EMBEDDED, new InferenceException(ErrorCode.NOT_FOUND, "text"));
        refusals.refuse(RequestProtocol.EMBEDDED, new InferenceException(ErrorCode.NOT_FOUND, "text"));

        assertThat(refusals.refused(RequestProtocol.HTTP, RefusalCause.MALFORMED))
                .isEqualTo(1);
        assertThat(refusals.refused(RequestProtocol.HTTP, RefusalCause.TOO_LARGE))
                .isEqualTo(1);
        assertThat(refusals.refused(RequestProtocol.GRPC, RefusalCause.OVERLOADED))
                .isEqualTo(1);
        assertThat(refusals.refused(RequestProtocol.EMBEDDED, RefusalCause.UNKNOWN_MODEL))
                .isEqualTo(2);
        assertThat(refusals.refused(RequestProtocol.GRPC, RefusalCause.MALFORMED))
                .isZero();
    }

    @Test
    void keepsTheCodeOfTheReferenceServerByDefault() {
        assertThat(Refusals.counting(false).translate(clientError)).isSameAs(clientError);
    }

    @Test
    void changesClientErrorsToInvalidArgumentIfConfigured() {
        InferenceException own = new InferenceException(ErrorCode.INTERNAL, "text");
        Refusals refusals = Refusals.counting(true);

        InferenceException translated = refusals.refuse(RequestProtocol.HTTP, clientError);

        assertThat(translated.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(translated.publicMessage()).isEqualTo("text");
        assertThat(refusals.translate(own)).isSameAs(own);
    }

    @Test
    void noneCountsNothing() {
        Refusals.NONE.refuse(RequestProtocol.HTTP, clientError);

        assertThat(Refusals.NONE.refused(RequestProtocol.HTTP, RefusalCause.MALFORMED))
                .isZero();
    }
}
