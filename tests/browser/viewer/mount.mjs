// Mounts a recording, `{snapshot, events, structure}`, in the published viewer.
//
// The viewer draws a graph and a course over it. Both are made here from the recording alone, by
// telling its own recorders what a build and a run would have told them.

import React from "react";
import { createRoot } from "react-dom/client";
import {
  ExplainableShell,
  FootprintTheme,
  coolLight,
  subflowResultToSnapshots,
  toVisualizationSnapshots,
} from "footprint-explainable-ui";
import { createTraceStructureRecorder } from "footprint-explainable-ui/flowchart";

// A fan-out has one template; what ran are branches, each a mount of it. They are put beside the
// template's head, so that each can be opened.
function withBranches(structure, tree) {
  const branches = new Map();
  for (const node of everyNode(tree)) {
    const cut = node.subflowId?.lastIndexOf("~") ?? -1;
    if (cut > 0) {
      const home = node.subflowId.slice(0, cut);
      branches.set(home, [...(branches.get(home) ?? []), node]);
    }
  }
  const spread = (node) => {
    if (!node) return node;
    const copy = { ...node, next: spread(node.next), children: node.children?.map(spread) };
    if (node.isDynamicParallel && branches.has(node.id)) {
      copy.children = branches.get(node.id).map((branch) => ({
        id: branch.subflowId,
        name: branch.name,
        type: "stage",
        isSubflowRoot: true,
        subflowId: branch.subflowId,
        subflowName: branch.name,
        subflowStructure: node.subflowStructure,
        isParallelChild: true,
        parallelGroupId: node.id,
      }));
    }
    return copy;
  };
  return spread(structure);
}

function* everyNode(node) {
  for (const todo = [node]; todo.length; ) {
    const one = todo.pop();
    yield one;
    if (one.next) todo.push(one.next);
    if (one.children) todo.push(...[...one.children].reverse());
  }
}

function graphOf(structure) {
  const { recorder, getGraph } = createTraceStructureRecorder();
  const add = (node) => {
    recorder.onStageAdded({
      stageId: node.id,
      name: node.name,
      type: node.type,
      isPausable: node.isPausable,
      spec: node,
    });
    if (node.isSubflowRoot) {
      recorder.onSubflowMounted({
        subflowId: node.subflowId,
        subflowName: node.subflowName,
        rootStageId: node.id,
        isLazy: node.isLazy,
        subflowSpec: node.subflowStructure,
      });
    }
  };
  for (let node = structure; node; node = node.next) {
    if (node.isLoopReference) break;
    add(node);
    const ends = [];
    for (const child of node.children ?? []) {
      add(child);
      const parallel = child.isParallelChild === true;
      recorder.onEdgeAdded({
        from: node.id,
        to: child.id,
        kind: parallel ? "fork-branch" : "decision-branch",
        label: parallel ? undefined : (child.branchId ?? child.id),
      });
      if (child.loopTarget) recorder.onLoopEdgeAdded({ from: child.id, to: child.loopTarget });
      else ends.push(child.id);
    }
    if (node.branchIds) {
      recorder.onDeciderComplete({
        decider: node.id,
        type: node.hasSelector ? "selector" : "decider",
        branchIds: node.branchIds,
        defaultBranch: node.defaultBranch,
      });
    }
    if (node.loopTarget) recorder.onLoopEdgeAdded({ from: node.id, to: node.loopTarget });
    else if (node.next) {
      for (const from of ends.length ? ends : [node.id]) {
        recorder.onEdgeAdded({ from, to: node.next.id, kind: "next" });
      }
    }
  }
  return getGraph();
}

// What a mount came to stands under its execution, or, of its last one, under its path.
function resultOf({ subflowResults }, { runtimeStageId, subflowId }) {
  return subflowResults?.[runtimeStageId] ?? subflowResults?.[subflowId];
}

// The executed stages in order, those inside of mounts where the mount ran.
function courseOf(snapshot) {
  const executionOrder = [];
  const errors = new Map();
  const follow = (tree) => {
    for (const node of everyNode(tree)) {
      executionOrder.push({
        runtimeStageId: node.runtimeStageId,
        stageId: node.id,
        stageName: node.name,
        timestampMs: executionOrder.length,
      });
      for (const words of Object.values(node.errors ?? {})) errors.set(node.id, String(words));
      const inner = resultOf(snapshot, node);
      if (node.subflowId && inner?.treeContext?.stageContexts) {
        follow(inner.treeContext.stageContexts);
      }
    }
  };
  follow(snapshot.executionTree);
  return { executionOrder, errors, running: false };
}

function narrativeOf(snapshot) {
  return snapshot.recorders?.find((row) => row.name === "Narrative")?.data ?? [];
}

// What the viewer's own readers make of a recording: every stage they know to have run.
function stepsOf({ snapshot }) {
  const narrative = narrativeOf(snapshot);
  const found = [];
  const look = (steps) => {
    for (const step of steps) {
      found.push(step);
      if (step.subflowResult) look(subflowResultToSnapshots(step.subflowResult, narrative));
    }
  };
  // Inside of a subflow the results of deeper ones are not at hand; all are in the one table.
  look(toVisualizationSnapshots(snapshot, narrative));
  const seen = new Set(found.map((step) => step.runtimeStageId));
  for (const result of Object.values(snapshot.subflowResults ?? {})) {
    for (const step of subflowResultToSnapshots(result, narrative)) {
      if (!seen.has(step.runtimeStageId)) found.push(step);
      seen.add(step.runtimeStageId);
    }
  }
  return found.map(({ runtimeStageId, stageName, memory, status }) => ({
    runtimeStageId,
    stageName,
    memory,
    status,
  }));
}

function mount(text, home) {
  const recording = JSON.parse(text);
  const { snapshot } = recording;
  const spec = withBranches(recording.structure, snapshot.executionTree);
  createRoot(home).render(
    React.createElement(
      FootprintTheme,
      { tokens: coolLight },
      React.createElement(ExplainableShell, {
        runtimeSnapshot: snapshot,
        narrativeEntries: narrativeOf(snapshot),
        spec,
        traceGraph: graphOf(spec),
        runtimeOverlay: courseOf(snapshot),
        title: spec.name,
        defaultTab: "narrative",
        defaultExpanded: { details: true, topology: true, timeline: true },
      }),
    ),
  );
}

globalThis.viewer = { mount, stepsOf: (text) => stepsOf(JSON.parse(text)) };
