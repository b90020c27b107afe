package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Machine;
import dev.nereid.benchmarks.report.Table;
import java.time.LocalDate;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Report of a run on a day and a machine. Immutable. */
public record Report(LocalDate date, Machine machine, Options options, List<Table> tables) {
    public Report {
        tables = List.copyOf(tables);
    }

    /** Describes the conditions of the run in lines. */
    public static List<String> circumstances(Machine machine, Options options) {
        Pace pace = options.pace();
        return Stream.concat(
                        machine.lines().stream(),
                        Stream.of(
                                "event loops: " + options.eventLoops() + " each for server, ceiling and client",
                                "pace: " + pace.warmUp().toSeconds() + " s warm-up, "
                                        + pace.measured().toSeconds() + " s measured, rounds: " + pace.rounds()))
                .toList();
    }

    public String fileName() {
        return date + "-" + machine.slug() + ".md";
    }

    public String markdown() {
        return "# Benchmarks of " + date + "\n\n"
                + circumstances(machine, options).stream()
                        .map(line -> "* " + line + "\n")
                        .collect(Collectors.joining())
                + "\n" + tables.stream().map(Table::markdown).collect(Collectors.joining());
    }
}
