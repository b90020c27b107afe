package dev.nereid.scheduler.ensemble;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.parameter.ParameterValue;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;

/** Records the responses to one request, with one number in each output. Safe for use by any thread. */
final class EnsembleClient implements ResponseObserver {
    final List<Map<String, Long>> responses = Collections.synchronizedList(new ArrayList<>());
    final List<Map<String, ParameterValue>> parameters = Collections.synchronizedList(new ArrayList<>());
    final CountDownLatch ended = new CountDownLatch(1);
    volatile int terminals;

    /** {@code true} if the final mark came with a response, and not behind all of them. */
    volatile boolean endsWithResponse;

    volatile @Nullable InferenceException error;
    private final ResponseFlow flow;

    EnsembleClient(ResponseFlow flow) {
        this.flow = flow;
    }

    EnsembleClient() {
        this(ResponseFlow.OPEN);
    }

    @Override
    public void onResponse(InferResponse response) {
        try (response) {
            Map<String, Long> values = new TreeMap<>();
            for (NamedTensor output : response.outputs()) {
                values.put(output.name(), output.tensor().data().get(ValueLayout.JAVA_LONG_UNALIGNED, 0));
            }
            responses.add(values);
            parameters.add(response.parameters());
        }
        if (response.isFinal()) {
            endsWithResponse = true;
            end();
        }
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // one call at a time
    private void end() {
        terminals++;
        ended.countDown();
    }

    boolean hasEnded() {
        return ended.getCount() == 0;
    }

    @Override
    public void onCompleted() {
        end();
    }

    @Override
    public void onError(InferenceException failure) {
        error = failure;
        end();
    }

    @Override
    public ResponseFlow flow() {
        return flow;
    }
}
