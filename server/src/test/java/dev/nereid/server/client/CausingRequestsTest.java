package dev.nereid.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.client.CausingRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.testkit.FakeRequest;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class CausingRequestsTest {
    private final FakeRequest first = new FakeRequest(1, List.of());
    private final FakeRequest second = new FakeRequest(1, List.of());
    private final AtomicInteger runs = new AtomicInteger();

    @Test
    void doesNotCountARequestThatEndsBeforeTheActionIsRegistered() {
        InferenceRequest ending =
                causing(second, () -> second.fail(new BackendException(ErrorCode.INTERNAL, "failed by the backend")));
        new CausingRequests(List.of(causing(first, () -> {}), ending)).onCancel(runs::incrementAndGet);

        first.cancel();
        first.cancel();

        assertThat(runs).hasValue(1);
    }

    @Test
    void runsTheActionIfTheLastRequestEndsAfterCancellations() {
        first.cancel();
        InferenceRequest ending =
                causing(second, () -> second.fail(new BackendException(ErrorCode.INTERNAL, "failed by the backend")));

        new CausingRequests(List.of(causing(first, () -> {}), ending)).onCancel(runs::incrementAndGet);

        assertThat(runs).hasValue(1);
    }

    @Test
    void countsARequestOnceThatIsCancelledAndEnds() {
        FakeRequest third = new FakeRequest(1, List.of());
        InferenceRequest ending = causing(second, () -> {
            second.cancel();
            second.fail(new BackendException(ErrorCode.CANCELLED, "cancelled"));
        });
        new CausingRequests(List.of(causing(first, () -> {}), ending, causing(third, () -> {})))
                .onCancel(runs::incrementAndGet);

        first.cancel();
        assertThat(runs).hasValue(0);
        third.cancel();

        assertThat(runs).hasValue(1);
    }

    @Test
    void runsNoActionIfAllRequestsEndWithoutCancellation() {
        Runnable failing = () -> first.fail(new BackendException(ErrorCode.INTERNAL, "failed by the backend"));

        new CausingRequests(List.of(causing(first, failing), causing(first, failing))).onCancel(runs::incrementAndGet);

        assertThat(runs).hasValue(0);
    }

    @Test
    void leavesNoActionIfARequestThrows() {
        InferenceRequest throwing = causing(second, () -> {
            throw new IllegalStateException("a fault");
        });
        CausingRequests requests = new CausingRequests(List.of(causing(first, () -> {}), throwing));

        assertThatIllegalStateException().isThrownBy(() -> requests.onCancel(runs::incrementAndGet));

        assertThat(first.openCancelActions()).isZero();
        first.cancel();
        assertThat(runs).hasValue(0);
    }

    @Test
    void leavesNoActionIfTheStackOfAModelEnds() {
        InferenceRequest throwing = causing(second, () -> {
            throw new StackOverflowError();
        });
        CausingRequests requests = new CausingRequests(List.of(causing(first, () -> {}), throwing));

        assertThatThrownBy(() -> requests.onCancel(runs::incrementAndGet)).isInstanceOf(StackOverflowError.class);

        assertThat(first.openCancelActions()).isZero();
    }

    /** Returns a request as the server has it, with an event that comes first when an action is registered. */
    private static InferenceRequest causing(FakeRequest request, Runnable event) {
        Class<?>[] types = {InferenceRequest.class, CausingRequest.class};
        return (InferenceRequest) Proxy.newProxyInstance(
                CausingRequestsTest.class.getClassLoader(), types, (_, method, arguments) -> {
                    if (method.getDeclaringClass() == CausingRequest.class) {
                        assertThat(method.getName()).isEqualTo("isCompleted");
                        return request.isComplete();
                    }
                    if (method.getName().equals("onCancel")) {
                        event.run();
                    }
                    try {
                        return method.invoke(request, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
