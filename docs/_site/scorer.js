// How search ranks pages: by the words of the question that their titles have, guides and tutorials first.
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename, kind]) => {
    const question = new URLSearchParams(window.location.search).get("q") ?? "";
    const words = question.toLowerCase().split(/\s+/).filter((word) => word.length > 2);
    const named = words.filter((word) => title.toLowerCase().includes(word)).length;
    const isGuide = /^docs\/(how-to|tutorials)\//.test(docname);
    const isNews = docname === "CHANGELOG";
    return score + 6 * named + (kind === "title" ? 20 : 0) + (isGuide ? 3 : 0) - (isNews ? 10 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
