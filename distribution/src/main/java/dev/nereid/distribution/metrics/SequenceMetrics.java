package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToLongFunction;

/** Metrics of sequences. Static functions only. */
final class SequenceMetrics {
    private static final String COPIES = "nereid_sequence_state_copies_total";
    private static final String ENDED = "nereid_sequence_ended_total";

    private SequenceMetrics() {}

    static byte[] text(List<SequenceStatistics> models) {
        CounterText text = new CounterText();
        if (models.isEmpty()) {
            return text.toByteArray();
        }
        gauge(
                text,
                "nereid_sequence_live",
                "Sequences that have not ended, with those in the backlog",
                models,
                SequenceStatistics::live);
        gauge(text, "nereid_sequence_backlog", "Sequences that wait for a slot", models, SequenceStatistics::backlog);
        gauge(text, "nereid_sequence_slots_used", "Slots with a sequence", models, SequenceStatistics::slotsUsed);
        gauge(text, "nereid_sequence_slots", "Slots of all instances", models, SequenceStatistics::slots);
        gauge(
                text,
                "nereid_sequence_state_bytes",
                "Memory of the states that sequences hold",
                models,
                SequenceStatistics::stateBytes);
        text.family(COPIES, "States of sequences that were copied");
        models.forEach(model -> text.sample(COPIES, ModelMetrics.labels(model.model()), model.stateCopies()));
        text.family(ENDED, "Sequences that ended, by reason");
        for (SequenceStatistics model : models) {
            Map<String, String> labels = ModelMetrics.labels(model.model());
            for (SequenceEndReason reason : SequenceEndReason.values()) {
                labels.put("reason", reason.name().toLowerCase(Locale.ROOT));
                text.sample(ENDED, labels, model.ended().getOrDefault(reason, 0L));
            }
        }
        return text.toByteArray();
    }

    private static void gauge(
            CounterText text,
            String name,
            String help,
            List<SequenceStatistics> models,
            ToLongFunction<SequenceStatistics> value) {
        text.gauge(name, help);
        models.forEach(model -> text.sample(name, ModelMetrics.labels(model.model()), value.applyAsLong(model)));
    }
}
