package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.ModelFaults;
import dev.nereid.api.statistics.OverdueControl;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** Metrics of loads and closes that take too long, and of faults of backends. Static functions only. */
final class FaultMetrics {
    private static final String CONTROL = "nereid_control_overdue";
    private static final String OUT_OF_MEMORY = "nereid_execution_out_of_memory_total";
    private static final String CHANGED_OUTPUTS = "nereid_output_changed_total";
    private static final String THREADS = "nereid_plugin_threads";

    private FaultMetrics() {}

    /** Returns the metrics of all models. A family without samples is omitted. */
    static byte[] text(List<OverdueControl> control, List<ModelFaults> models) {
        CounterText text = new CounterText();
        if (!control.isEmpty()) {
            text.gauge(CONTROL, "Loads and closes of models that take longer than their limit at this moment");
            control.forEach(overdue -> text.sample(CONTROL, labels(overdue), overdue.count()));
        }
        if (models.isEmpty()) {
            return text.toByteArray();
        }
        text.family(OUT_OF_MEMORY, "Executions that failed with OutOfMemoryError");
        models.forEach(model -> text.sample(OUT_OF_MEMORY, ModelMetrics.labels(model.model()), model.outOfMemory()));
        text.family(CHANGED_OUTPUTS, "Outputs that backends changed after they passed them, of those that are checked");
        models.forEach(
                model -> text.sample(CHANGED_OUTPUTS, ModelMetrics.labels(model.model()), model.changedOutputs()));
        Map<String, Long> threads = new TreeMap<>();
        models.stream()
                .filter(model -> !model.plugin().isEmpty())
                .forEach(model -> threads.merge(model.plugin(), model.pluginThreads(), Math::max));
        if (!threads.isEmpty()) {
            text.gauge(THREADS, "Threads that a plugin has started, once the process has many threads");
            threads.forEach((plugin, count) -> text.sample(THREADS, Map.of("plugin", plugin), count));
        }
        return text.toByteArray();
    }

    private static Map<String, String> labels(OverdueControl control) {
        Map<String, String> labels = new TreeMap<>();
        labels.put("model", control.model());
        labels.put("step", control.kind().name().toLowerCase(Locale.ROOT));
        control.version().ifPresent(version -> labels.put("version", String.valueOf(version)));
        return labels;
    }
}
