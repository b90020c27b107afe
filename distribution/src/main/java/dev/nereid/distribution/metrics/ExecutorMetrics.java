package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.ExecutorUse;
import java.util.List;

/** Metrics of the threads on which the server runs tasks of models. Static functions only. */
final class ExecutorMetrics {
    private static final String THREADS = "nereid_executor_threads";
    private static final String WAITING = "nereid_executor_waiting_tasks";

    private ExecutorMetrics() {}

    /** Returns the metrics of all models that had such tasks. A family without samples is omitted. */
    static byte[] text(List<ExecutorUse> models) {
        CounterText text = new CounterText();
        if (!models.isEmpty()) {
            text.gauge(THREADS, "Threads for tasks of a model beside its executions");
            models.forEach(model -> text.sample(THREADS, ModelMetrics.labels(model.model()), model.threads()));
            text.gauge(WAITING, "Tasks of a model that wait for such a thread");
            models.forEach(model -> text.sample(WAITING, ModelMetrics.labels(model.model()), model.waiting()));
        }
        return text.toByteArray();
    }
}
