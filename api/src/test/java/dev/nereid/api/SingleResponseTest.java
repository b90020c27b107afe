package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class SingleResponseTest {
    private final SingleResponse single = new SingleResponse(ModelRef.latest("m"));
    private final Request request = new Request();

    @Test
    void handsOverTheResponse() throws InterruptedException {
        Response response = new Response(true);
        single.onSent(request);

        single.onResponse(response);

        assertThat(single.await()).isSameAs(response);
        assertThat(response.closes).isZero();
    }

    @Test
    void acceptsOneResponseOfADecoupledModel() throws InterruptedException {
        Response response = new Response(false);

        single.onResponse(response);
        assertThat(single.outcome()).isNotDone();
        single.onCompleted();

        assertThat(single.await()).isSameAs(response);
        assertThat(response.closes).isZero();
    }

    @Test
    void failsWithTheErrorOfTheRequest() {
        InferenceException error = new InferenceException(ErrorCode.UNAVAILABLE, "busy");

        single.onRefused(error);

        assertThatThrownBy(single::await).isSameAs(error);
    }

    @Test
    void refusesSeveralResponses() {
        Response first = new Response(false);
        Response second = new Response(false);
        single.onSent(request);

        single.onResponse(first);
        single.onResponse(second);
        assertThat(request.cancels).isEqualTo(1);
        single.onError(new InferenceException(ErrorCode.CANCELLED, "cancelled"));

        assertThatThrownBy(single::await)
                .hasMessage(
                        "model 'm': several responses (expected: one; infer with an observer for a decoupled model)")
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        assertThat(List.of(first.closes, second.closes)).containsOnly(1);
    }

    @Test
    void cancelsARequestThatRespondedTwiceBeforeItWasSent() {
        single.onResponse(new Response(false));
        single.onResponse(new Response(false));

        single.onSent(request);

        assertThat(request.cancels).isEqualTo(1);
    }

    @Test
    void refusesNoResponse() {
        single.onCompleted();

        assertThatThrownBy(single::await).hasMessageStartingWith("model 'm': no response (expected: one;");
    }

    @Test
    void closesTheResponseBeforeAnError() {
        Response response = new Response(false);
        InferenceException error = new InferenceException(ErrorCode.INTERNAL, "broken");

        single.onResponse(response);
        single.onError(error);

        assertThatThrownBy(single::await).isSameAs(error);
        assertThat(response.closes).isEqualTo(1);
    }

    @Test
    void cancelsTheRequestOfAnInterruptedThreadAndClosesALateResponse() {
        Response late = new Response(true);
        single.onSent(request);
        Thread.currentThread().interrupt();

        assertThatThrownBy(single::await).isInstanceOf(InterruptedException.class);
        single.onResponse(late);

        assertThat(request.cancels).isEqualTo(1);
        assertThat(late.closes).isEqualTo(1);
    }

    /** Counts cancellations. */
    private static final class Request implements Cancellation {
        private int cancels;

        @Override
        public void cancel() {
            cancels++;
        }
    }

    /** Counts its closes. */
    private static final class Response implements InferResponse {
        private final boolean isFinal;
        private int closes;

        Response(boolean isFinal) {
            this.isFinal = isFinal;
        }

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
            return isFinal;
        }

        @Override
        public TensorLease lease(int output) {
            throw new IndexOutOfBoundsException(output);
        }

        @Override
        public void close() {
            closes++;
        }
    }
}
