package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.OverdueExecutions;
import java.util.List;

/** Metrics of overdue executions. Static functions only. */
final class OverdueMetrics {
    private static final String NOW = "nereid_execution_overdue";
    private static final String TOTAL = "nereid_execution_overdue_total";

    private OverdueMetrics() {}

    static byte[] text(List<OverdueExecutions> models) {
        CounterText text = new CounterText();
        if (models.isEmpty()) {
            return text.toByteArray();
        }
        text.gauge(NOW, "Executions that take longer than their limit at this moment");
        models.forEach(model -> text.sample(NOW, ModelMetrics.labels(model.model()), model.now()));
        text.family(TOTAL, "Executions that took longer than their limit");
        models.forEach(model -> text.sample(TOTAL, ModelMetrics.labels(model.model()), model.total()));
        return text.toByteArray();
    }
}
