package dev.nereid.benchmarks.report;

import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** The goal of a workload relative to a ceiling. Immutable. */
public sealed interface Goal {
    /** Returns the goal of a ceiling that is for orientation. */
    static Goal none() {
        return new None();
    }

    /** Returns how the subject compares with the ceiling, in this goal's own measure: by default, the ratio of the rates. */
    default double compare(Sample subject, Sample ceiling) {
        return subject.perSecond() / ceiling.perSecond();
    }

    /** Returns a comparison as the table shows it. */
    default String show(double comparison) {
        return Figures.ratio(comparison);
    }

    String target();

    /** Returns the table's cell for a comparison. */
    String verdict(double comparison);

    /** No goal: the ratio is only shown. */
    record None() implements Goal {
        @Override
        public String target() {
            return "";
        }

        @Override
        public String verdict(double comparison) {
            return "";
        }
    }

    /** A share of the ceiling's rate, the smallest that will do. */
    record RateAtLeast(double share) implements Goal {
        @Override
        public String target() {
            return ">= " + Figures.ratio(share);
        }

        @Override
        public String verdict(double comparison) {
            return Figures.verdict(comparison >= share);
        }
    }

    /** The smallest share of the rate at which the ceiling serves groups of several requests, each counted as one. */
    record RateOfGroups(int requests, double share) implements Goal {
        @Override
        public double compare(Sample subject, Sample ceiling) {
            return subject.perSecond() * requests / ceiling.perSecond();
        }

        @Override
        public String show(double comparison) {
            return Figures.ratio(comparison) + " a group of " + requests;
        }

        @Override
        public String target() {
            return ">= " + Figures.ratio(share);
        }

        @Override
        public String verdict(double comparison) {
            return Figures.verdict(comparison >= share);
        }
    }

    /** The ceiling's latency and at most {@code extra} more for each step, at the median. */
    record LatencyOfSteps(int steps, Duration extra) implements Goal {
        @Override
        public double compare(Sample subject, Sample ceiling) {
            return (subject.p50Micros() - ceiling.p50Micros()) / steps;
        }

        @Override
        public String show(double comparison) {
            return String.format(Locale.ROOT, "p50 %+.2f us a step", comparison);
        }

        @Override
        public String target() {
            return String.format(Locale.ROOT, "<= +%.2f us", extraMicros());
        }

        @Override
        public String verdict(double comparison) {
            return Figures.verdict(comparison <= extraMicros());
        }

        private double extraMicros() {
            return (double) extra.toNanos() / TimeUnit.MICROSECONDS.toNanos(1);
        }
    }

    /** The ceiling's latency and at most {@code extra} more, at the median. */
    record LatencyWithin(Duration extra) implements Goal {
        @Override
        public double compare(Sample subject, Sample ceiling) {
            return subject.p50Micros() - ceiling.p50Micros();
        }

        @Override
        public String show(double comparison) {
            return "p50 " + shift(comparison);
        }

        @Override
        public String target() {
            return "<= " + shift(extraMicros());
        }

        @Override
        public String verdict(double comparison) {
            return Figures.verdict(comparison <= extraMicros());
        }

        private double extraMicros() {
            return (double) extra.toNanos() / TimeUnit.MICROSECONDS.toNanos(1);
        }

        private static String shift(double micros) {
            return String.format(Locale.ROOT, "%+.2f ms", micros / TimeUnit.MILLISECONDS.toMicros(1));
        }
    }
}
