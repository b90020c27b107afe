package dev.nereid.benchmarks.report;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A table of texts with a title. Confined to the thread that measures. */
public final class Table {
    private final String title;
    private final List<String> headers;
    private final List<List<String>> rows = new ArrayList<>();
    private final List<String> footnotes = new ArrayList<>();

    public Table(String title, String... headers) {
        this.title = title;
        this.headers = List.of(headers);
    }

    public void add(String... cells) {
        if (cells.length != headers.size()) {
            throw new IllegalArgumentException("cells: " + cells.length + " (expected: " + headers.size() + ")");
        }
        rows.add(List.of(cells));
    }

    public void addFootnote(String text) {
        footnotes.add(text);
    }

    /** Returns the table for a terminal. The first column is aligned to the left, the others to the right. */
    public String text() {
        List<Integer> widths = IntStream.range(0, headers.size())
                .mapToObj(column -> Stream.concat(Stream.of(headers), rows.stream())
                        .mapToInt(row -> row.get(column).length())
                        .max()
                        .orElse(0))
                .toList();
        StringBuilder text = new StringBuilder(title).append('\n');
        text.append(line(headers, widths));
        rows.forEach(row -> text.append(line(row, widths)));
        footnotes.forEach(footnote -> text.append(footnote).append('\n'));
        return text.toString();
    }

    public String markdown() {
        StringBuilder text = new StringBuilder("## ").append(title).append("\n\n");
        if (!rows.isEmpty()) {
            text.append(markdown(headers)).append("| --- |");
            text.append(" ---: |".repeat(headers.size() - 1)).append('\n');
            rows.forEach(row -> text.append(markdown(row)));
            text.append('\n');
        }
        footnotes.forEach(footnote -> text.append(footnote).append("\n\n"));
        return text.toString();
    }

    private static String line(List<String> cells, List<Integer> widths) {
        return IntStream.range(0, cells.size())
                .mapToObj(column -> pad(cells.get(column), widths.get(column), column == 0))
                .collect(Collectors.joining("  "))
                .stripTrailing()
                .concat("\n");
    }

    private static String pad(String cell, int width, boolean left) {
        String space = " ".repeat(width - cell.length());
        return left ? cell + space : space + cell;
    }

    private static String markdown(List<String> cells) {
        // Leading spaces, which distinguish a ceiling from its subject, would be lost.
        return cells.stream()
                .map(cell -> cell.startsWith("  ") ? "&nbsp;&nbsp;" + cell.strip() : cell)
                .collect(Collectors.joining(" | ", "| ", " |\n"));
    }
}
