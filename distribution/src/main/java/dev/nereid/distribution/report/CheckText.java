package dev.nereid.distribution.report;

import com.google.protobuf.TextFormat;
import dev.nereid.repository.config.ConfigProblem;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.CheckReport.ModelReport;
import inference.ModelConfig;
import java.util.List;
import java.util.stream.Collectors;

/** The report of a check for people, with completed configurations if it is verbose. Immutable. */
public record CheckText(CheckReport report, boolean verbose) {
    public String text() {
        StringBuilder text = new StringBuilder();
        text.append(BackendTable.of(report.backends())).append('\n').append(models());
        String details = details();
        text.append(details.isEmpty() ? "" : "\n").append(details);
        return text.append('\n').append(summary()).append('\n').toString();
    }

    private TextTable models() {
        TextTable table = new TextTable("MODEL", "VERSIONS", "BACKEND", "RESULT");
        for (ModelReport model : report.models()) {
            String versions = model.versions().stream().map(String::valueOf).collect(Collectors.joining(","));
            String backend = model.config().map(ModelConfig::getBackend).orElse("");
            table.add(
                    model.name(),
                    versions.isEmpty() ? "-" : versions,
                    backend.isEmpty() ? "-" : backend,
                    result(model));
        }
        return table;
    }

    private static String result(ModelReport model) {
        String warnings = model.warnings().isEmpty() ? "" : ", " + count(model.warnings(), "warning");
        return (model.isValid() ? "valid" : "invalid: " + count(model.errors(), "error")) + warnings;
    }

    private String details() {
        StringBuilder text = new StringBuilder();
        for (ModelReport model : report.models()) {
            String file = PrintableText.of(model.file().toString());
            model.errors().forEach(error -> append(text, file, error));
            model.warnings()
                    .forEach(warning -> text.append(file)
                            .append(": warning: ")
                            .append(PrintableText.of(warning))
                            .append('\n'));
            if (verbose && model.config().isPresent()) {
                text.append(PrintableText.of(model.name())).append(": completed configuration\n");
                text.append(
                        TextFormat.printer().printToString(model.config().get()).indent(2));
            }
        }
        report.warnings()
                .forEach(warning -> text.append("warning: ")
                        .append(PrintableText.of(warning))
                        .append('\n'));
        return text.toString();
    }

    /** Appends an error in the form of compilers: file, line, column, and the line with the position. */
    private static void append(StringBuilder text, String file, ConfigProblem error) {
        text.append(file);
        if (error.hasPosition()) {
            text.append(':').append(error.line()).append(':').append(error.column());
        }
        text.append(": error: ");
        text.append(PrintableText.of(error.brief()));
        text.append('\n');
        if (!error.sourceLine().isEmpty()) {
            text.append("    ").append(PrintableText.ofLine(error.sourceLine())).append('\n');
            text.append("    ").repeat(' ', error.sourceColumn()).append("^\n");
        }
    }

    private String summary() {
        long invalid =
                report.models().stream().filter(model -> !model.isValid()).count();
        long valid = report.models().size() - invalid;
        return count(report.models(), "model") + ": " + valid + " valid, " + invalid + " invalid";
    }

    private static String count(List<?> items, String name) {
        return items.size() + " " + name + (items.size() == 1 ? "" : "s");
    }
}
