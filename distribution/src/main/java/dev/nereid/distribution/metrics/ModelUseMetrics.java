package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.ExecutorUse;
import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.api.statistics.OverdueExecutions;
import java.util.List;

/**
 * Metrics of threads, responses and overdue executions of models. Families without samples are omitted. Static functions
 * only.
 */
final class ModelUseMetrics {
    private ModelUseMetrics() {}

    /** Returns the metrics of the threads on which the server runs tasks of models. */
    static byte[] executors(List<ExecutorUse> models) {
        return new CounterText()
                .gauge(
                        "nereid_executor_threads",
                        "Threads for tasks of a model beside its executions",
                        models,
                        ExecutorUse::model,
                        ExecutorUse::threads)
                .gauge(
                        "nereid_executor_waiting_tasks",
                        "Tasks of a model that wait for such a thread",
                        models,
                        ExecutorUse::model,
                        ExecutorUse::waiting)
                .toByteArray();
    }

    /** Returns the metrics of the responses that models hold of other ones. */
    static byte[] responses(List<HeldResponses> models) {
        return new CounterText()
                .gauge(
                        "nereid_model_responses_open",
                        "Responses of other models that a model has received and not closed",
                        models,
                        HeldResponses::holder,
                        HeldResponses::open)
                .toByteArray();
    }

    static byte[] overdue(List<OverdueExecutions> models) {
        return new CounterText()
                .gauge(
                        "nereid_execution_overdue",
                        "Executions that take longer than their limit at this moment",
                        models,
                        OverdueExecutions::model,
                        OverdueExecutions::now)
                .family(
                        "nereid_execution_overdue_total",
                        "Executions that took longer than their limit",
                        models,
                        OverdueExecutions::model,
                        OverdueExecutions::total)
                .toByteArray();
    }
}
