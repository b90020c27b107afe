package dev.nereid.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelResponse;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.Map;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class SingleResponseTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeModelRequest request = request();
    private final SingleResponse single = new SingleResponse(request, "m", Runnable::run);

    private FakeModelRequest request() {
        return (FakeModelRequest) new FakeModelClient(memory).request("m");
    }

    @Test
    void handsOverTheResponseAtTheEndOfTheRequest() throws InterruptedException {
        request.send(single);
        request.respond(Map.of());
        assertThat(single.outcome()).isNotDone();
        request.complete();

        try (ModelResponse response = single.await()) {
            assertThat(response.outputs()).isEmpty();
            assertThat(request.openResponses()).isOne();
        }
    }

    @Test
    void failsWithTheErrorOfTheRequestAndClosesTheResponse() {
        BackendException error = new BackendException(ErrorCode.UNAVAILABLE, "busy");
        request.send(single);
        request.respond(Map.of());

        request.fail(error);

        assertThatThrownBy(single::await).isSameAs(error);
        assertThat(request.openResponses()).isZero();
    }

    @Test
    void refusesSeveralResponsesAndCancelsTheRequest() {
        request.send(single);

        request.respond(Map.of());
        request.respond(Map.of());

        assertThat(request.isComplete()).isTrue();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(single::await)
                .withMessage("model 'm': several responses (expected: one; send with an observer to a decoupled model)")
                .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
        assertThat(request.openResponses()).isZero();
    }

    @Test
    void refusesNoResponse() {
        request.send(single);

        request.complete();

        assertThatThrownBy(single::await).hasMessageStartingWith("model 'm': no response (expected: one;");
    }

    @Test
    void cancelsTheRequestOfAnInterruptedThreadAndClosesALateResponse() {
        FakeModelRequest late = request();
        late.send(single);
        Thread.currentThread().interrupt();

        assertThatThrownBy(single::await).isInstanceOf(InterruptedException.class);
        late.respond(Map.of());
        late.complete();

        assertThat(late.openResponses()).isZero();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(request::sendAndWait)
                .returns(ErrorCode.CANCELLED, BackendException::code);
    }
}
