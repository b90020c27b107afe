package dev.nereid.scheduler.batch;

import dev.nereid.api.parameter.ParameterView;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.RequestView;
import java.util.List;
import java.util.OptionalLong;

/** Shows the request of a client to code of a backend, as long as allowed. */
abstract sealed class CheckedRequestView implements RequestView permits CandidateView, BackendRequest {
    abstract ScheduledRequest scheduled();

    /** Returns the checked request; throws {@link IllegalStateException} if the backend may not use it any more. */
    abstract CheckedRequest checked();

    @Override
    public final String id() {
        return checked().id();
    }

    @Override
    public final int batchSize() {
        return checked().batchSize();
    }

    @Override
    public final List<String> requestedOutputs() {
        return checked().outputs().names();
    }

    @Override
    public final Parameters parameters() {
        return ParameterView.of(checked().parameters());
    }

    @Override
    public final long priority() {
        return checked().options().priority();
    }

    @Override
    public final long timeoutMicros() {
        return checked().options().timeoutMicros();
    }

    @Override
    public final OptionalLong deadlineNanos() {
        return checked().options().deadlineNanos();
    }

    @Override
    public final boolean isCancelled() {
        return scheduled().isCancelledForBackend();
    }
}
