package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** The counters of refused requests, and the codes of mistakes of clients. */
class RefusalsTest {
    private final InferenceException mistake = InferenceException.clientMistake("text");

    @Test
    void countsByProtocolAndCause() {
        Refusals refusals = Refusals.counting(false);

        refusals.refuse(RequestProtocol.HTTP, mistake);
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
    void tellsMistakesOfClientsAsTheReferenceServerDoes() {
        assertThat(Refusals.counting(false).told(mistake)).isSameAs(mistake);
    }

    @Test
    void tellsMistakesOfClientsAsTheirsIfAsked() {
        InferenceException own = new InferenceException(ErrorCode.INTERNAL, "text");
        Refusals refusals = Refusals.counting(true);

        InferenceException told = refusals.refuse(RequestProtocol.HTTP, mistake);

        assertThat(told.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThat(told.publicMessage()).isEqualTo("text");
        assertThat(refusals.told(own)).isSameAs(own);
    }

    @Test
    void countsNothingWhereThereAreNoFigures() {
        Refusals.NONE.refuse(RequestProtocol.HTTP, mistake);

        assertThat(Refusals.NONE.refused(RequestProtocol.HTTP, RefusalCause.MALFORMED))
                .isZero();
    }
}
